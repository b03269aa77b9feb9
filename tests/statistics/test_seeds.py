"""Do intervals over seeds cover, and are they those of the textbook?"""

import numpy as np
import pytest
from one_line import refusal
from scipy import stats

from headjax.statistics import seed_difference, seed_interval


def test_a_mean_has_the_t_interval_of_scipy():
  values = np.random.default_rng(0).normal(3.0, 2.0, 7)
  found = seed_interval(values, level=0.9)
  low, high = stats.t.interval(0.9, 6, values.mean(), stats.sem(values))
  assert found.n_seeds == 7
  np.testing.assert_allclose(
    [found.estimate, found.low, found.high], [values.mean(), low, high]
  )


def test_a_difference_has_the_welch_interval_of_scipy():
  random = np.random.default_rng(1)
  a, b = random.normal(2, 1, 5), random.normal(0, 3, 9)
  found = seed_difference(a, b)
  wanted = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
  np.testing.assert_allclose([found.low, found.high], [*wanted])
  assert found.n_seeds == 5
  assert found.estimate == pytest.approx(a.mean() - b.mean(), rel=1e-14)


def test_intervals_cover_the_truth_as_often_as_they_say():
  random = np.random.default_rng(2)
  inside = [0, 0]
  for _ in range(1000):
    a, b = random.normal(1, 2, 4), random.normal(0, 1, 6)
    for i, found in enumerate((seed_interval(a), seed_difference(a, b))):
      inside[i] += found.low <= 1 <= found.high
  # Four standard errors of a share of 1,000; Welch is approximate.
  assert 0.922 < inside[0] / 1000 < 0.978
  assert 0.915 < inside[1] / 1000 < 0.98


def test_what_is_not_defined_is_left_out_and_one_seed_has_no_interval():
  found = seed_interval([1.0, np.nan, 3.0])
  assert (found.estimate, found.n_seeds) == (2.0, 2)
  one = seed_interval([np.nan, 5.0])
  assert (one.estimate, one.n_seeds) == (5.0, 1)
  assert np.isnan([one.low, one.high]).all()
  none = seed_difference([np.nan], [1.0, 2.0])
  assert none.n_seeds == 0 and np.isnan(none.estimate)


def test_equal_seeds_have_an_interval_of_no_width():
  found = seed_difference([1.0, 1.0], [0.5, 0.5])
  assert (found.low, found.estimate, found.high) == (0.5, 0.5, 0.5)


def test_bad_input_is_refused():
  with refusal("values", "shape (1, 2)"):
    seed_interval([[1.0, 2.0]])
  with refusal("level", "95"):
    seed_difference([1.0, 2.0], [1.0, 2.0], level=95)
