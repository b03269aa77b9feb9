"""Are ratios averaged over the pairs with a swing, and resampled rightly?"""

import numpy as np
import pytest
from one_line import refusal
from scipy import stats

from headjax.statistics.ratios import mean_ratios, zero_p


def cell(pairs=60, seed=0):
  rng = np.random.default_rng(seed)
  whole = rng.normal(1, 1.5, pairs)
  parts = whole[:, None] * [0.3, -0.1, 0.0] + rng.normal(size=(pairs, 3))
  return parts, whole


def test_means_are_of_ratios_over_valid_pairs():
  parts, whole = cell()
  found = mean_ratios(parts, whole, draws=100)
  kept = [i for i in range(60) if whole[i] >= 0.5]
  assert 20 < len(kept) < 60 and found.valid.sum() == len(kept)
  for j in range(3):
    ratios = [parts[i, j] / whole[i] for i in kept]
    assert found.mean[j] == pytest.approx(np.mean(ratios), rel=1e-12)


def test_a_swing_at_the_threshold_counts_and_a_negative_one_does_not():
  found = mean_ratios(np.ones((4, 1)), [0.5, -3.0, 2.0, 0.49], draws=9)
  np.testing.assert_array_equal(found.valid, [True, False, True, False])
  assert found.mean == pytest.approx((2 + 0.5) / 2)


def test_intervals_and_p_are_those_of_the_resampled_means():
  parts, whole = cell()
  found = mean_ratios(parts, whole, draws=20_000, level=0.9)
  ratios = parts[found.valid] / whole[found.valid, None]
  rng = np.random.default_rng(9)
  n = len(ratios)
  means = ratios[rng.integers(0, n, (20_000, n))].mean(axis=1)
  spread = means.std(axis=0)
  low, high = np.quantile(means, [0.05, 0.95], axis=0)
  np.testing.assert_allclose((found.low - low) / spread, 0, atol=0.08)
  np.testing.assert_allclose((found.high - high) / spread, 0, atol=0.08)
  slow = [2 * min((c <= 0).mean(), (c >= 0).mean()) for c in means.T]
  np.testing.assert_allclose(found.p, slow, atol=0.03)
  assert found.draws.shape == (20_000, 3)


def test_p_of_a_mean_that_is_zero_is_uniform():
  rng = np.random.default_rng(1)
  found = mean_ratios(rng.normal(size=(100, 500)), np.ones(100), draws=1000)
  assert stats.kstest(found.p, "uniform").pvalue > 1e-3


def test_two_sided_p_has_no_one_added():
  assert zero_p(np.ones(100)) == 0.0
  assert zero_p(np.zeros(100)) == 1.0
  assert zero_p([-1.0, 2.0, 3.0, 4.0]) == 0.5
  np.testing.assert_array_equal(zero_p([[1, -1], [1, 1]]), [0.0, 1.0])


def test_without_swings_everything_is_undefined():
  for whole in ([0.1, 0.2, 0.3], [0.1, 0.2, 0.6], [-1.0, -1.0, -2.0]):
    found = mean_ratios(np.ones((3, 2)), whole, draws=10)
    for value in (found.mean, found.low, found.high, found.p):
      assert value.shape == (2,) and np.isnan(value).all()


def test_wrong_tables_are_refused():
  with refusal("parts: got shape (3,) beside (3,) swings"):
    mean_ratios(np.ones(3), np.ones(3))
  with refusal("parts: got values that are not finite"):
    mean_ratios([[np.nan]], [1.0])
  with refusal("threshold: got 0; expected above 0"):
    mean_ratios([[1.0]], [1.0], threshold=0)
