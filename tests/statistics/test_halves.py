"""Is a lane within one half of the heads told from none, and tested?"""

import itertools

import numpy as np
import pytest
from one_line import refusal
from scipy import stats

from headjax.statistics import half_lanes

EVEN = np.arange(8) % 2 == 0


def slow_score(table) -> float:
  """Lambda by the definition, one pair of heads at a time."""
  w = np.maximum(table, 0.0)
  same = everything = 0.0
  for one, other in itertools.combinations(range(len(w)), 2):
    for h, k in itertools.product(range(w.shape[1]), repeat=2):
      everything += w[one, h] * w[other, k]
      same += w[one, h] * w[other, k] * (h == k)
  return same / everything


def test_each_half_has_its_own_score():
  e = np.random.default_rng(0).normal(size=(4, 8))
  found = half_lanes(e[None], EVEN, draws=50)
  assert found.shared == pytest.approx(slow_score(e[:, ::2]), rel=1e-12)
  assert found.rotating == pytest.approx(slow_score(e[:, 1::2]), rel=1e-12)
  assert found.difference == found.shared - found.rotating
  assert (found.chance_shared, found.chance_rotating) == (0.25, 0.25)


def test_a_lane_among_the_shared_indices_is_found():
  e = np.random.default_rng(1).random((4, 8)) * 0.02
  e[:, 2] += 1.0  # shared
  e[np.arange(4), [1, 3, 5, 7]] += 1.0  # rotating: no index twice
  found = half_lanes(e[None], EVEN, draws=999)
  assert found.shared > 0.9 and found.rotating < 0.1
  assert found.p < 0.05
  turned = half_lanes(e[None], ~EVEN, draws=999)
  assert turned.difference == -found.difference and turned.p > 0.9


def test_p_is_uniform_without_lanes():
  random = np.random.default_rng(2)
  found = [
    half_lanes(random.normal(size=(1, 4, 8)), EVEN, draws=199, seed=i).p
    for i in range(300)
  ]
  assert stats.kstest(found, "uniform").pvalue > 0.01


def test_a_half_without_positive_effects_has_no_score():
  e = np.ones((3, 8))
  e[:, 1::2] = -1.0
  found = half_lanes(e[None], EVEN, draws=20)
  assert found.shared == pytest.approx(0.25)
  assert np.isnan([found.rotating, found.difference, found.p]).all()


def test_halves_that_are_none_are_refused():
  e = np.ones((1, 3, 4))
  for shared in ([True] * 4, [False] * 4, [True, False]):
    with refusal("shared", "of 4 heads"):
      half_lanes(e, shared)
