"""Where in a corpus does sequence i start? A pure function of seed and i.

No generator has a state here, so any step of a run can be computed alone, on
any machine, and resuming needs nothing but the number of the step.
"""

import functools

import numpy as np

from headjax.checks import check, check_choice

SAMPLINGS = ("once", "replacement")
GAMMA = np.uint64(0x9E3779B97F4A7C15)
_LAST = np.uint64(2**64 - 1)


def starts(
  sampling: str, seed: int, indices: np.ndarray, n_tokens: int, length: int
) -> np.ndarray:
  """The first token of each sequence.

  Args:
    sampling: "replacement": uniform over all starts, independent of each
      other; "once": the windows of `in_order`, in an order that the seed draws.
    seed: of the draws; any integer.
    indices: `[sequence]` integers from 0, which sequences.
    n_tokens: of the corpus.
    length: tokens of a sequence, targets included: context plus 1.

  Returns:
    `[sequence]` int64 positions from 0.

  Raises:
    ValueError: the corpus is too short for that.
  """
  check_choice("sampling", sampling, SAMPLINGS)
  indices = _checked(sampling, indices, n_tokens, length)
  if sampling == "once":
    return shuffled(_available(n_tokens, length), seed)[indices] * (length - 1)
  return uniform(n_tokens - length + 1, seed, indices)


def in_order(indices: np.ndarray, n_tokens: int, length: int) -> np.ndarray:
  """The first tokens when one sequence follows the other.

  The last token of a sequence, only ever a target there, is the first one of
  the next.

  Args:
    indices: `[sequence]` integers from 0, which sequences.
    n_tokens: of the text.
    length: tokens of a sequence, targets included.

  Returns:
    `[sequence]` int64 positions from 0.

  Raises:
    ValueError: the text is too short for that.
  """
  return _checked("once", indices, n_tokens, length) * (length - 1)


def _checked(sampling, indices, n_tokens, length):
  indices = np.asarray(indices, np.int64)
  check_enough(sampling, n_tokens, length, 1 + indices.max(initial=0))
  check(
    indices.min(initial=0) >= 0,
    "indices",
    indices.min(initial=0),
    "0 or more",
    "count sequences from 0",
  )
  return indices


def _available(n_tokens, length):
  """How many windows `in_order` has."""
  return (n_tokens - 1) // (length - 1)


def check_enough(
  sampling: str, n_tokens: int, length: int, n_sequences: int
) -> None:
  """Fails unless a corpus has so many sequences of so many tokens.

  Args:
    sampling: as in `starts`.
    n_tokens: of the corpus.
    length: tokens of a sequence, at least 2.
    n_sequences: as many as will be read, over the whole run.
  """
  check(length >= 2, "length", length, "at least 2 tokens", "give more")
  check(
    n_tokens >= length,
    "corpus",
    f"{n_tokens:,} tokens",
    f"at least {length:,}, the context plus 1",
    "use a longer corpus or a shorter context",
  )
  available = _available(n_tokens, length)
  check(
    sampling != "once" or n_sequences <= available,
    "corpus, read once",
    f"{n_sequences:,} sequences of {length:,} tokens",
    f"at most {available:,}, for its {n_tokens:,} tokens",
    "train fewer steps, or use a longer corpus",
  )


@functools.lru_cache(maxsize=2)
def shuffled(n: int, seed: int) -> np.ndarray:
  """The numbers below n in an order that the seed draws, read-only int64.

  They are sorted by the 64-bit draws of `uniform`, which all differ.
  """
  order = np.argsort(_drawn(seed, np.arange(n)))
  order.flags.writeable = False
  return order


def uniform(below: int, seed: int, indices: np.ndarray) -> np.ndarray:
  """Independent draws from [0, below), exactly uniform, one per index.

  Source: the output function of SplitMix64 (Steele, Lea, Flood 2014), applied
  twice, to a counter whose start the seed decides by the same function. The
  uneven end of the 64-bit range is rejected and drawn again, by the next
  counter of the same index.

  Args:
    below: number of outcomes, 1 to 2**63.
    seed: any integer; its lowest 64 bits count.
    indices: `[draw]` integers from 0.

  Returns:
    `[draw]` int64.
  """
  below = np.uint64(below)
  # The largest value of the last whole run of outcomes.
  limit = _LAST - (_LAST % below + np.uint64(1)) % below
  drawn = _drawn(seed, indices)
  while (uneven := drawn > limit).any():
    drawn[uneven] = mixed(drawn[uneven] + GAMMA)
  return (drawn % below).astype(np.int64)


def _drawn(seed, indices):
  """64 random bits for each index."""
  key = mixed(mixed(np.array([seed % 2**64], np.uint64)))
  counters = np.asarray(indices).astype(np.uint64)
  return mixed(mixed(key + counters * GAMMA))


def mixed(values: np.ndarray) -> np.ndarray:
  """The output function of SplitMix64: a bijection of uint64 numbers."""
  values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
  values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
  return values ^ (values >> np.uint64(31))
