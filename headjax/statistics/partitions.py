"""Do two groups of heads differ, or would any split of them? All splits tell.

The labels of the groups are exchanged, their sizes kept. Where the statistic
is a model's answer, each split is one more run, so the splits are listed first
and the statistic is computed elsewhere.
"""

import dataclasses
import itertools
import math

import numpy as np

from headjax.checks import check
from headjax.outline import of_fields, table_of_fields

# Sums in another order differ in the last bits: such ties count.
_TIE = 1e-10


@dataclasses.dataclass(frozen=True)
class Partitions:
  """Splits of `n` members into a first group and the rest.

  Attributes:
    first: `[split, member]` whether a member is in the first group; the split
      that was observed is among them, in row 0.
    exhaustive: whether these are all splits, each of them once.
  """

  first: np.ndarray
  exhaustive: bool

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def p_value(self, statistic) -> float:
    """How rare a statistic as large as the observed one is, two-sided.

    Args:
      statistic: `[split]`, in the order of `first`; its size counts.

    Returns:
      The share of splits at least as large; the observed one counts.

    Raises:
      ValueError: not one finite number for each split.
    """
    size = np.abs(np.asarray(statistic, np.float64))
    check(
      size.shape == (len(self.first),) and bool(np.isfinite(size).all()),
      "statistic",
      f"shape {size.shape}, {np.count_nonzero(~np.isfinite(size))} not finite",
      f"{len(self.first)} finite numbers, one for each split",
      "compute it for all splits",
    )
    return float((size >= size[0] * (1 - _TIE)).mean())


def partitions(first, *, limit: int = 10_000, seed: int = 0) -> Partitions:
  """Splits of the same sizes as an observed one.

  Args:
    first: `[member]` bool, the observed first group.
    limit: all splits are listed if there are no more; otherwise as many are
      drawn, with repeats, beside the observed one.
    seed: of the draws.

  Raises:
    ValueError: one of the two groups is empty.

  Examples:
    >>> partitions([True, False, False]).first.astype(int)
    array([[1, 0, 0],
           [0, 1, 0],
           [0, 0, 1]])

  Source: paper C, the sign-shuffle null. Drawn splits count as
    (1 + #) / (1 + n), of all splits p is exact.
  """
  first = np.asarray(first, bool)
  n, size = len(first), int(first.sum())
  check(
    0 < size < n,
    "first",
    f"{size} of {n} members",
    "two groups with members",
    "there is nothing to exchange",
  )
  if math.comb(n, size) <= limit:
    chosen = itertools.combinations(range(n), size)
    rows = np.zeros((math.comb(n, size), n), bool)
    for row, members in zip(rows, chosen, strict=True):
      row[list(members)] = True
    others = rows[(rows != first).any(axis=1)]
    return Partitions(np.vstack([first, others]), exhaustive=True)
  drawn = np.random.default_rng(seed).permuted(
    np.broadcast_to(first, (limit, n)), axis=1
  )
  return Partitions(np.vstack([first, drawn]), exhaustive=False)
