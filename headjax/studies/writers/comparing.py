"""Do two numbers that should be equal agree? Differences and their allowance.

Numbers that follow from others are compared directly. Bootstrap numbers rest
on draws of their own: their rates are compared in standard errors of both sets
of draws.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

# Of a number as it stands in a file with seven digits.
_ROUNDING = 5e-7


@dataclasses.dataclass(frozen=True)
class Comparison:
  """The largest difference of one statistic.

  Attributes:
    statistic: its name.
    count: how many numbers were compared.
    largest: the largest difference.
    allowed: what it may be.
    unit: of both, "" for that of the numbers.
    where: which number differs most.
    wrong: how many differ by more.
  """

  statistic: str
  count: int
  largest: float
  allowed: float
  unit: str
  where: str
  wrong: int

  @property
  def agrees(self) -> bool:
    """Whether no number differs by more than is allowed."""
    return self.wrong == 0


def compare(
  statistic: str,
  ours,
  theirs,
  names: Sequence[str],
  *,
  allowed: float,
  rounded=0.0,
) -> Comparison:
  """Compares numbers that follow from others in the same file.

  Args:
    statistic: its name.
    ours: `[item]` recomputed.
    theirs: `[item]` in the file.
    names: `[item]` what each number belongs to.
    allowed: difference, in units of the numbers.
    rounded: size of the numbers that ours was made of. They and theirs have
      seven digits; what that leaves open is allowed beside `allowed`.
  """
  ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
  difference = np.abs(ours - theirs)
  # NaN never agrees.
  slack = _ROUNDING * (np.abs(theirs) + np.abs(rounded))
  wrong = ~(difference <= allowed + slack)
  return _comparison(statistic, difference, wrong, names, allowed, "")


def compare_rates(
  statistic: str, deviations, names: Sequence[str], *, allowed: float = 5.0
) -> Comparison:
  """Compares numbers that rest on random draws.

  Args:
    statistic: its name.
    deviations: `[item]` of `rate_deviation`.
    names: `[item]` what each number belongs to.
    allowed: difference in standard errors.
  """
  deviations = np.abs(np.asarray(deviations, float))
  wrong = ~(deviations <= allowed)
  unit = "standard errors"
  return _comparison(statistic, deviations, wrong, names, allowed, unit)


def rate_deviation(ours, n_ours: int, theirs, n_theirs: int) -> np.ndarray:
  """How far two rates are from each other, in standard errors.

  Args:
    ours: `[...]` rate among our draws.
    n_ours: draws.
    theirs: `[...]` rate among theirs.
    n_theirs: draws.

  Returns:
    `[...]`; one hit and one miss are added, so that rates of 0 have an error.

  Examples:
    >>> float(rate_deviation(0.5, 200, 0.4, 200)).__round__(2)
    2.01
  """
  ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
  hits = ours * n_ours + theirs * n_theirs
  pooled = (hits + 1) / (n_ours + n_theirs + 2)
  variance = pooled * (1 - pooled) * (1 / n_ours + 1 / n_theirs)
  return (ours - theirs) / np.sqrt(variance)


def end_deviation(draws, end: float, tail: float, n_theirs: int) -> float:
  """How far an end of an interval is from its place among our draws.

  Args:
    draws: `[draw]` ours.
    end: theirs, a percentile of their draws.
    tail: share of their draws below it.
    n_theirs: how many draws those are.

  Returns:
    The difference between `tail` and the share of our draws below the end, in
    standard errors; 0 if `tail` lies between the shares below and up to it.
  """
  slack = _ROUNDING * abs(end) + 1e-12
  below = np.mean(draws < end - slack)
  up_to = np.mean(draws <= end + slack)
  nearest = np.clip(tail, below, up_to)
  return float(rate_deviation(nearest, len(draws), tail, n_theirs))


def _comparison(statistic, difference, wrong, names, allowed, unit):
  """The comparison whose largest difference is a wrong one, if there is any."""
  if not len(difference):
    return Comparison(statistic, 0, 0.0, allowed, unit, "", 0)
  at = int(np.argmax(np.where(np.isnan(difference), np.inf, difference)))
  if wrong.any() and not wrong[at]:
    at = int(np.argmax(np.where(wrong, difference, -1.0)))
  return Comparison(
    statistic,
    len(difference),
    float(difference[at]),
    allowed,
    unit,
    names[at],
    int(wrong.sum()),
  )
