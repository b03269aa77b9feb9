"""Do few directions carry the effect? The share of the ten best, and of chance.

Directions are ranked on one split and their share is computed on another. It
is a share of single effects: what ten of them do together is not asked.
"""

import dataclasses

import numpy as np

from headjax.checks import check
from headjax.outline import of_fields, table_of_fields
from headjax.statistics.draws import chunk_sizes, p_value


@dataclasses.dataclass(frozen=True)
class TopShare:
  """How much of the effect the best directions carry.

  Attributes:
    value: their drops over the sum of all positive drops, on the split that
      they were not chosen on; nan if no drop is positive.
    random_median: the same of random sets of as many directions.
    random_largest: of the best of these sets.
    p: `(1 + sets at least as good) / (1 + sets)`.
    count: how many directions.
    draws: how many random sets.
  """

  value: float
  random_median: float
  random_largest: float
  p: float
  count: int
  draws: int

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def top_share(
  validation, evaluation, *, count: int = 10, draws: int = 1000, seed: int = 0
) -> TopShare:
  """The share of the directions that are best on another split.

  Args:
    validation: `[example, direction]` drops of the logit difference, which
      rank the directions by their means.
    evaluation: `[example, direction]` drops that the share is made of.
    count: directions chosen.
    draws: random sets of `count` directions.
    seed: of these sets.

  Returns:
    The share, and those of random sets.

  Raises:
    ValueError: tables of different directions, or fewer than `count` of them.

  Examples:
    >>> drops = np.array([[4.0, 1.0, 0.0, -1.0]])
    >>> top_share(drops, drops, count=1, draws=9).value
    0.8

  Source: paper A, appendix B.2 and C (coordinate concentration).
  """
  ranked = np.asarray(validation, np.float64).mean(axis=0)
  drops = np.asarray(evaluation, np.float64).mean(axis=0)
  check(
    ranked.shape == drops.shape and drops.ndim == 1,
    "evaluation",
    f"{drops.shape} directions",
    f"{ranked.shape} as in validation",
    "measure the same layer and site of one model on both splits",
  )
  check(
    1 <= count <= drops.size,
    "count",
    count,
    f"1 to {drops.size} directions",
    "ask for fewer",
  )
  positive = drops[drops > 0].sum()
  shares = drops / positive if positive > 0 else np.full_like(drops, np.nan)
  chosen = np.argsort(-ranked, kind="stable")[:count]
  random = _random_sums(shares, count, draws, seed)
  value = float(shares[chosen].sum())
  return TopShare(
    value=value,
    random_median=float(np.median(random)),
    random_largest=float(random.max()),
    p=p_value(random, value, tail="upper"),
    count=count,
    draws=draws,
  )


def _random_sums(values, count: int, draws: int, seed: int) -> np.ndarray:
  """`[draw]` sums over random sets, each without repeats."""
  generator = np.random.default_rng(seed)
  sums = []
  for size in chunk_sizes(draws, 16 * values.nbytes):
    rows = np.broadcast_to(values, (size, values.size))
    sums.append(generator.permuted(rows, axis=1)[:, :count].sum(axis=1))
  return np.concatenate(sums)
