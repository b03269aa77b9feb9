"""Does a result hold for other seeds? Intervals over trained runs.

A run is one draw of the initial parameters and of the order of the data, and
the unit here; how many examples or heads were measured in it does not count.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from scipy import stats

from headjax.checks import check
from headjax.outline import of_fields, table_of_fields


@dataclasses.dataclass(frozen=True)
class SeedInterval:
  """A mean over seeds and its t interval.

  Attributes:
    estimate: the mean, or the difference of two means.
    low: lower end; nan where the seeds are too few to tell.
    high: upper end, likewise.
    n_seeds: how many runs it rests on; of two samples, the smaller number.
  """

  estimate: float
  low: float
  high: float
  n_seeds: int

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def seed_interval(
  values: Sequence[float] | np.ndarray, *, level: float = 0.95
) -> SeedInterval:
  """The t interval of a mean over seeds.

  Args:
    values: `[seed]`; what is not defined in a run, nan, is left out.
    level: coverage, between 0 and 1.

  Returns:
    The interval; its ends are nan with fewer than two seeds.

  Raises:
    ValueError: a level outside (0, 1), or values that are no list of numbers.

  Examples:
    >>> found = seed_interval([1.0, 2.0, 3.0])
    >>> round(found.estimate, 3), round(found.low, 3), round(found.high, 3)
    (2.0, -0.484, 4.484)

  Source: Student (1908); coverage rests on values that are close to normal.
  """
  _check_level(level)
  kept = _defined(values)
  n = len(kept)
  if n < 2:
    estimate = float(kept[0]) if n else float("nan")
    return SeedInterval(estimate, float("nan"), float("nan"), n)
  reach = _quantile(level, n - 1) * kept.std(ddof=1) / np.sqrt(n)
  return _around(kept.mean(), reach, n)


def seed_difference(
  values_a: Sequence[float] | np.ndarray,
  values_b: Sequence[float] | np.ndarray,
  *,
  level: float = 0.95,
) -> SeedInterval:
  """The interval of a difference of means between two sets of runs.

  The two sets are independent: a seed of one design has nothing in common
  with the same seed of another but the order of the data.

  Args:
    values_a: `[seed]`; nan is left out.
    values_b: `[seed]` of the other design, likewise.
    level: coverage, between 0 and 1.

  Returns:
    The interval of `mean(a) - mean(b)`; its ends are nan unless both sets have
    two seeds.

  Raises:
    ValueError: as in `seed_interval`.

  Examples:
    >>> found = seed_difference([3.0, 4.0, 5.0], [1.0, 2.0, 3.0])
    >>> round(found.estimate, 3), round(found.low, 3), round(found.high, 3)
    (2.0, -0.267, 4.267)

  Source: Welch (1947), unequal variances.
  """
  _check_level(level)
  a, b = _defined(values_a), _defined(values_b)
  n = min(len(a), len(b))
  estimate = float(a.mean() - b.mean()) if n else float("nan")
  if n < 2:
    return SeedInterval(estimate, float("nan"), float("nan"), n)
  parts = np.array([x.var(ddof=1) / len(x) for x in (a, b)])
  variance = parts.sum()
  if variance == 0:
    return SeedInterval(estimate, estimate, estimate, n)
  freedom = variance**2 / (parts**2 / (np.array([len(a), len(b)]) - 1)).sum()
  return _around(estimate, _quantile(level, freedom) * np.sqrt(variance), n)


def _defined(values) -> np.ndarray:
  """The values that are no nan."""
  found = np.asarray(values, np.float64)
  check(
    found.ndim == 1,
    "values",
    f"shape {found.shape}",
    "one number for each seed",
    "reduce each run to one number",
  )
  return found[~np.isnan(found)]


def _check_level(level: float) -> None:
  check(0 < level < 1, "level", level, "between 0 and 1", "try 0.95")


def _quantile(level: float, freedom: float) -> float:
  return float(stats.t.ppf((1 + level) / 2, freedom))


def _around(estimate: float, reach: float, n: int) -> SeedInterval:
  low, high = estimate - reach, estimate + reach
  return SeedInterval(float(estimate), float(low), float(high), n)
