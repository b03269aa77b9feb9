"""What follows A? Rows in which A B stood once before, random or natural.

Source: paper B; the random rows are those of its released code, number for
number, for a vocabulary of at least 10,000 and 256 tokens.
"""

import numpy as np

from headjax.checks import check
from headjax.data.probes import Probe, plain_targets

LENGTH, EXAMPLES, SEED = 256, 2000, 42
_LOW, _HIGH = 100, 10_000  # ids that are drawn, if there are as many
_LEAST = 200  # ids of a vocabulary that the rows can be drawn from
_EARLIEST = 20  # position of the first A, of 256
# The baseline of the random rows may meet the target, as in the source: of n
# keys a perfect head is n times it, and with fewer none could be 50 times.
_SHORTEST = 64


def random_induction(
  d_vocab: int,
  n_ctx: int,
  n_examples: int = EXAMPLES,
  *,
  length: int = LENGTH,
  seed: int = SEED,
) -> Probe:
  """Random tokens with A B in the first half and A at the end.

  No other A and B stand in a row. Of a vocabulary below 10,000 the first
  hundredth, where special tokens are, is not drawn from.

  Args:
    d_vocab: of the model, in tokens; at least 200.
    n_ctx: of the model, in tokens.
    n_examples: rows.
    length: of a row, in tokens. With another one than 256 the first A stands
      as far along in proportion.
    seed: of the draws.

  Raises:
    ValueError: a vocabulary too small, or a context shorter than the rows.

  Source: paper B, the synthetic induction batch; RandomState(42).
  """
  check(
    d_vocab >= _LEAST,
    "vocabulary",
    f"{d_vocab} tokens",
    f"at least {_LEAST}",
    "take a model with more tokens, or natural text",
  )
  check(
    _SHORTEST <= length <= n_ctx,
    "length",
    f"{length} tokens",
    f"{_SHORTEST} to {n_ctx}, the context of this model",
    "ask for shorter rows, which are not those of the paper",
  )
  check(n_examples >= 1, "n_examples", n_examples, "at least 1", "ask for some")
  small = -(-d_vocab // 100), d_vocab
  low, high = (_LOW, _HIGH) if d_vocab >= _HIGH else small
  first = max(1, _EARLIEST * length // LENGTH)
  random = np.random.RandomState(seed)
  tokens = np.zeros((n_examples, length), np.int64)
  place, answer = np.zeros((2, n_examples), np.int64)
  for i, row in enumerate(tokens):
    row[:] = random.randint(low, high, size=length)
    a, b = random.choice(np.arange(low, high), size=2, replace=False)
    place[i], answer[i] = random.randint(first, length // 2), b
    row[place[i]], row[place[i] + 1] = a, b
    _replace(random, row, a, place[i], low, high)
    _replace(random, row, b, place[i] + 1, low, high)
    row[-1] = a
  return Probe(
    tokens.astype(np.int32),
    np.full(n_examples, length - 1),
    answer,
    _marked(tokens, answer),
    1 / (high - low),
    f"random induction, {length} tokens",
  )


def natural_induction(
  rows: np.ndarray,
  *,
  least_id: int = 100,
  gap: int = 20,
  earliest: int = 0,
  name: str = "natural induction",
) -> Probe:
  """Stretches of text in which some T S is followed by T again.

  Of each row the first such T counts, and of what follows the latest T. Rows
  without one are left out.

  Args:
    rows: `[row, pos]` ids, of any text.
    least_id: smaller ids count neither as T nor as S: bytes and special tokens.
    gap: tokens between S and the second T, at least.
    earliest: position of the first T, at least. 20 keeps it away from the
      first token.
    name: of the text, for labels.

  Raises:
    ValueError: no row has one.

  Source: paper B, the natural-text batch.
  """
  rows = np.asarray(rows)
  found = [_repeat(row, least_id, gap, earliest) for row in rows]
  kept = [i for i, place in enumerate(found) if place is not None]
  check(
    bool(kept),
    "rows",
    f"{len(rows)} rows without a token that comes again",
    f"one that comes again after at least {gap} tokens",
    "pass more or longer rows, or a smaller gap",
  )
  first, query = np.array([found[i] for i in kept]).T
  rows = rows[kept].astype(np.int32)
  answer = rows[np.arange(len(rows)), first + 1]
  return Probe(
    rows, query, answer.astype(np.int64), plain_targets(query, first),
    1 / len(np.unique(rows)), name,
  )  # fmt: skip


def _replace(random, row, token, kept, low, high) -> None:
  """Draws anew wherever the token stands elsewhere; a draw may be it again."""
  for k in range(len(row)):
    if row[k] == token and k != kept:
      row[k] = random.randint(low, high)


def _marked(tokens, answer) -> dict[str, np.ndarray]:
  """The targets; a row where B is not found exactly once has no induction."""
  found = tokens[:, :-1] == answer[:, None]
  once = found.sum(1) == 1
  earlier = np.where(once, found.argmax(1) - 1, -1)
  query = np.full(len(tokens), tokens.shape[1] - 1)
  return plain_targets(query, earlier)


def _repeat(row, least_id, gap, earliest) -> tuple[int, int] | None:
  """Where T stands first and last."""
  for i in range(earliest, len(row) - 2 - gap):
    t, s = row[i], row[i + 1]
    if min(t, s) < least_id or t == s:
      continue
    later = np.flatnonzero(row[i + 1 + gap :] == t)
    if len(later):
      return i, int(i + 1 + gap + later[-1])
  return None
