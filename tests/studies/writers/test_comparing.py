"""Are differences found, and draws compared within their own noise?"""

import numpy as np
import pytest
from scipy import stats

from headjax.studies.writers.comparing import (
  compare,
  compare_rates,
  end_deviation,
  rate_deviation,
)

NAMES = ["a", "b", "c"]


def test_the_largest_difference_is_told_with_its_place():
  found = compare("x", [1.0, 2.0, 3.0], [1.0, 2.5, 3.1], NAMES, allowed=0.2)
  assert (found.largest, found.where, found.wrong) == (0.5, "b", 1)
  assert not found.agrees
  assert compare("x", [1.0], [1.0 + 1e-7], ["a"], allowed=0).agrees
  assert not compare("x", [1.0], [1.0 + 1e-6], ["a"], allowed=0).agrees


def test_rounding_of_what_a_number_was_made_of_is_allowed():
  ours, theirs = [0.001], [0.001004]
  assert not compare("x", ours, theirs, ["a"], allowed=1e-6).agrees
  assert compare("x", ours, theirs, ["a"], allowed=1e-6, rounded=10.0).agrees
  # The largest difference is not always the wrong one.
  rounded = np.array([100.0, 0.0])
  found = compare(
    "x", [1e-5, 5e-6], [0, 0], NAMES[:2], allowed=1e-6, rounded=rounded
  )
  assert (found.wrong, found.where) == (1, "b")


def test_nan_never_agrees():
  found = compare("x", [1.0, np.nan], [1.0, 2.0], NAMES[:2], allowed=9)
  assert found.wrong == 1 and found.where == "b"
  assert not compare_rates("x", [np.nan], ["a"]).agrees


def test_nothing_to_compare_agrees():
  assert compare("x", [], [], [], allowed=0).agrees


def test_rates_of_one_chance_differ_by_a_normal_deviate():
  rng = np.random.default_rng(0)
  a = rng.binomial(4000, 0.03, 3000) / 4000
  b = rng.binomial(1000, 0.03, 3000) / 1000
  found = rate_deviation(a, 4000, b, 1000)
  assert stats.kstest(found, "norm").statistic < 0.05
  assert rate_deviation(0.0, 100, 0.0, 100) == 0
  assert rate_deviation(0.0, 20_000, 0.01, 10_000) < -5


def test_ends_of_the_same_draws_differ_by_a_normal_deviate():
  rng = np.random.default_rng(1)
  found = []
  for _ in range(400):
    ours, theirs = rng.normal(size=2000), rng.normal(size=1000)
    end = np.quantile(theirs, 0.025)
    found.append(end_deviation(ours, end, 0.025, 1000))
  assert np.std(found) == pytest.approx(1, abs=0.15)
  assert abs(np.mean(found)) < 0.2
  draws = rng.normal(size=2000)
  assert end_deviation(draws, -1.4, 0.025, 1000) > 5
  assert end_deviation(draws, -2.6, 0.025, 1000) < -3


def test_an_end_among_equal_draws_is_in_its_place():
  assert end_deviation(np.full(100, 0.3), 0.3 + 1e-8, 0.025, 100) == 0.0
  assert end_deviation(np.full(100, 0.3), 0.31, 0.025, 100) > 5
