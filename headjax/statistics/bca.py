"""How sure is a mean of skewed values? The BCa bootstrap.

It corrects the percentile interval for bias and for a spread that changes with
the mean, which effects in logits with a few large prompts need.
"""

import numpy as np
from scipy import stats

from headjax.checks import check
from headjax.statistics.resampling import Interval


def bca_mean(
  values, *, draws: int = 10_000, seed: int = 0, level: float = 0.95
) -> Interval:
  """The BCa interval of a mean.

  Args:
    values: `[example]`, independent and finite.
    draws: resamples.
    seed: of the resamples.
    level: coverage, between 0 and 1.

  Returns:
    The mean and its interval; without width where all values are equal.

  Raises:
    ValueError: fewer than two values, or values that are not finite.

  Examples:
    >>> found = bca_mean([0.0, 1.0, 2.0, 3.0], draws=999)
    >>> found.estimate, found.low < 1.5 < found.high
    (1.5, True)

  Source: Efron (1987), by scipy.stats.bootstrap; paper C, group lesions.
  """
  values = np.asarray(values, np.float64)
  check(
    values.ndim == 1 and len(values) >= 2 and bool(np.isfinite(values).all()),
    "values",
    f"shape {values.shape}, {np.count_nonzero(~np.isfinite(values))} of them "
    "not finite",
    "two or more finite numbers, one for each example",
    "measure more prompts",
  )
  check(0 < level < 1, "level", level, "between 0 and 1", "try 0.95")
  check(draws >= 1, "draws", draws, "at least 1", "ask for more draws")
  mean = float(values.mean())
  if np.ptp(values) == 0:  # the acceleration would be 0 / 0
    return Interval(mean, mean, mean)
  found = stats.bootstrap(
    (values,),
    np.mean,
    n_resamples=draws,
    confidence_level=level,
    method="BCa",
    batch=max(1, 2**22 // len(values)),
    rng=np.random.default_rng(seed),
  ).confidence_interval
  return Interval(mean, float(found.low), float(found.high))
