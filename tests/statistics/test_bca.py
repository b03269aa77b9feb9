"""Is the BCa interval Efron's, and does it do better on skewed values?"""

import numpy as np
import pytest
from one_line import refusal
from scipy import stats

from headjax.statistics.bca import bca_mean


def slow_bca(values, level, draws, seed):
  """The interval by Efron's formulas, with resamples of its own."""
  rng = np.random.default_rng(seed)
  n, mean = len(values), values.mean()
  means = np.array([values[rng.integers(0, n, n)].mean() for _ in range(draws)])
  z0 = stats.norm.ppf((means < mean).mean())
  left_out = np.array([np.delete(values, i).mean() for i in range(n)])
  deviation = left_out.mean() - left_out
  a = (deviation**3).sum() / (6 * (deviation**2).sum() ** 1.5)
  ends = []
  for tail in ((1 - level) / 2, (1 + level) / 2):
    z = z0 + stats.norm.ppf(tail)
    ends.append(np.quantile(means, stats.norm.cdf(z0 + z / (1 - a * z))))
  return ends


def test_ends_are_those_of_the_formulas():
  values = np.random.default_rng(0).exponential(size=30)
  found = bca_mean(values, draws=20_000, level=0.9)
  low, high = slow_bca(values, 0.9, 20_000, seed=1)
  assert found.estimate == values.mean()
  assert found.low == pytest.approx(low, abs=0.012)
  assert found.high == pytest.approx(high, abs=0.02)
  plain = np.quantile(
    values[np.random.default_rng(2).integers(0, 30, (20_000, 30))].mean(1),
    [0.05, 0.95],
  )
  assert found.high - plain[1] > 0.02  # what the correction is for


def test_seeds_decide_and_the_sign_mirrors():
  values = np.random.default_rng(3).normal(size=20) ** 3
  assert bca_mean(values, draws=500) == bca_mean(values, draws=500)
  assert bca_mean(values, draws=500) != bca_mean(values, draws=500, seed=1)
  there, back = bca_mean(values), bca_mean(-values)
  assert there.low == pytest.approx(
    -back.high, abs=0.1 * np.ptp([*there.__dict__.values()])
  )


def test_equal_values_have_no_width():
  found = bca_mean([0.25] * 5)
  assert (found.estimate, found.low, found.high) == (0.25, 0.25, 0.25)


def test_wrong_arguments_are_refused():
  for wrong in ([1.0], [[1.0, 2.0]], [1.0, np.inf]):
    with refusal("values: got shape"):
      bca_mean(wrong)
  with refusal("level: got 1"):
    bca_mean([1.0, 2.0], level=1)
  with refusal("draws: got 0"):
    bca_mean([1.0, 2.0], draws=0)
