"""Which of many tests hold together? P-values adjusted for their number.

A test is rejected at a level when its adjusted p is at most that level. NaN is
no test: it stays NaN, does not count and is never rejected.
"""

import numpy as np

from headjax.checks import check

# Counted p-values are often exactly on the line, where rounding would decide.
_TIE = 1e-12


def benjamini_hochberg(p) -> np.ndarray:
  """P-values adjusted to control the false discovery rate.

  Of the tests with an adjusted p of at most q, no more than the share q is
  expected to be false, if the tests are independent or depend positively.

  Args:
    p: of any shape, all of them tests of one family.

  Returns:
    The adjusted p, in [0, 1], of the same shape.

  Raises:
    ValueError: a p outside [0, 1].

  Examples:
    >>> benjamini_hochberg([0.01, 0.04, 0.03, 0.5])
    array([0.04      , 0.05333333, 0.05333333, 0.5       ])

  Source: Benjamini and Hochberg (1995), the step-up rule.
  """
  return _adjusted(p, _step_up)


def holm(p) -> np.ndarray:
  """P-values adjusted so that no false rejection at all is likely.

  Args:
    p: of any shape, all of them tests of one family.

  Returns:
    The adjusted p, in [0, 1], of the same shape.

  Raises:
    ValueError: a p outside [0, 1].

  Examples:
    >>> holm([0.01, 0.04, 0.03, 0.5])
    array([0.04, 0.09, 0.09, 0.5 ])

  Source: Holm (1979), the step-down rule; any dependence.
  """
  return _adjusted(p, _step_down)


def rejected(adjusted, level: float) -> np.ndarray:
  """Which tests are rejected at a level.

  Args:
    adjusted: p-values of `benjamini_hochberg` or `holm`, of any shape.
    level: the false discovery rate, or the chance of any false rejection.

  Returns:
    Bool, of the same shape; a p equal to the level, up to rounding, counts.

  Raises:
    ValueError: a level outside [0, 1].

  Examples:
    >>> rejected(benjamini_hochberg([0.04, 0.045, 0.05]), 0.05)
    array([ True,  True,  True])
  """
  check(0 <= level <= 1, "level", level, "0 to 1", "try 0.1")
  return np.asarray(adjusted) <= level * (1 + _TIE)


def _step_up(ascending: np.ndarray) -> np.ndarray:
  n = len(ascending)
  scaled = ascending * n / np.arange(1, n + 1)
  return np.minimum.accumulate(scaled[::-1])[::-1]


def _step_down(ascending: np.ndarray) -> np.ndarray:
  return np.maximum.accumulate(ascending * np.arange(len(ascending), 0, -1))


def _adjusted(p, steps) -> np.ndarray:
  """Applies a rule for ascending p to those that are defined."""
  p = np.asarray(p, np.float64)
  wrong = (p < 0) | (p > 1)
  check(
    not wrong.any(),
    "p",
    p[wrong][0] if wrong.any() else None,
    "0 to 1",
    "pass p-values, not statistics",
  )
  found = np.full(p.shape, np.nan)
  tests = ~np.isnan(p)
  order = np.argsort(p[tests], kind="stable")
  adjusted = np.empty(len(order))
  adjusted[order] = np.minimum(1.0, steps(p[tests][order]))
  found[tests] = adjusted
  return found
