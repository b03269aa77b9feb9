"""Do two quantities rank things alike, among all and within groups?"""

from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata, spearmanr

from headjax.outline import of_fields, table_of_fields


class WithinGroups(NamedTuple):
  """Rank correlations within groups.

  Attributes:
    median: over the groups that have one; nan if none has.
    groups: how many have one.
    constant_x: groups dropped because x is constant there.
    constant_y: groups dropped because only y is constant there.
  """

  median: float
  groups: int
  constant_x: int
  constant_y: int

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def rank_correlation(x, y, tolerance: float = 0.0) -> float:
  """Spearman's rho; tied values have their average rank.

  Args:
    x: `[n]`.
    y: `[n]`.
    tolerance: x counts as constant if its range is at most this share of its
      mean size.

  Returns:
    In [-1, 1]; nan where x or y is constant.

  Examples:
    >>> round(rank_correlation([1, 2, 3], [1, 4, 9]), 6)
    1.0
  """
  x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
  if is_constant(x, tolerance) or is_constant(y):
    return float("nan")
  return float(spearmanr(x, y).statistic)


def is_constant(x: np.ndarray, tolerance: float = 0.0) -> bool:
  """Whether the range is at most a share of the mean size, or there is none."""
  return np.ptp(x) <= tolerance * np.abs(x).mean() if len(x) else True


def within_groups(x, y, groups, tolerance: float = 0.0) -> WithinGroups:
  """The median rank correlation within groups.

  Args:
    x: `[n]`.
    y: `[n]`.
    groups: `[n, k]` labels; rows that are equal are one group.
    tolerance: as in `rank_correlation`.

  Examples:
    >>> x, y = [1, 2, 3, 5, 5], [3, 4, 5, 1, 2]
    >>> within_groups(x, y, [[0], [0], [0], [1], [1]])
    WithinGroups(median=1.0, groups=1, constant_x=1, constant_y=0)
  """
  x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
  _, label = np.unique(np.asarray(groups), axis=0, return_inverse=True)
  found, constant_x, constant_y = [], 0, 0
  for group in range(label.max(initial=-1) + 1):
    here = label == group
    if is_constant(x[here], tolerance):
      constant_x += 1
    elif is_constant(y[here]):
      constant_y += 1
    else:
      found.append(rank_correlation(x[here], y[here]))
  median = float(np.median(found)) if found else float("nan")
  return WithinGroups(median, len(found), constant_x, constant_y)


def permuted(x, y, groups, draws: int, seed: int) -> np.ndarray:
  """`[draw]`: the statistic of `within_groups` after y is permuted in each.

  The mean over the groups that have one, by which two groups have a median.

  Args:
    x: `[n]`.
    y: `[n]`.
    groups: `[n]` labels; y is permuted among those of a group only.
    draws: permutations.
    seed: of the draws.
  """
  x, y, groups = np.asarray(x), np.asarray(y), np.asarray(groups)
  rng, found = np.random.default_rng(seed), []
  for label in np.unique(groups):
    a, b = (rankdata(values[groups == label]) for values in (x, y))
    if np.ptp(a) == 0 or np.ptp(b) == 0:
      continue
    a, b = ((ranks - ranks.mean()) / ranks.std() for ranks in (a, b))
    orders = rng.permuted(np.tile(b, (draws, 1)), axis=1)
    found.append(orders @ a / len(a))
  return np.mean(found, axis=0) if found else np.full(draws, np.nan)
