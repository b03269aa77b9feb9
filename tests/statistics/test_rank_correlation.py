"""Are ranks averaged over ties, and groups without ranks dropped?"""

import numpy as np
import pytest

from headjax.statistics.rank_correlation import (
  permuted,
  rank_correlation,
  within_groups,
)


def slow_rho(x, y):
  """Pearson's correlation of average ranks, by counting."""
  ranks = []
  for values in (np.asarray(x), np.asarray(y)):
    below = (values[:, None] > values[None]).sum(1)
    equal = (values[:, None] == values[None]).sum(1)
    ranks.append(below + (equal - 1) / 2)
  return np.corrcoef(*ranks)[0, 1]


def test_ties_have_their_average_rank():
  rng = np.random.default_rng(0)
  x, y = rng.integers(0, 5, (2, 40))
  assert rank_correlation(x, y) == pytest.approx(slow_rho(x, y), abs=1e-12)
  assert abs(slow_rho(x, y)) > 1e-3


def test_what_is_constant_has_no_ranks():
  assert np.isnan(rank_correlation([1, 1, 1], [1, 2, 3]))
  assert np.isnan(rank_correlation([1, 2, 3], [0, 0, 0]))
  near = [5.332, 5.334, 5.336]
  assert np.isnan(rank_correlation(near, [1, 2, 3], tolerance=1e-3))
  assert rank_correlation(near, [1, 2, 3]) == 1.0


def test_the_median_is_over_groups_that_have_ranks():
  rng = np.random.default_rng(1)
  groups = np.stack([np.arange(60) // 12, np.arange(60) // 12 % 2], 1)
  x, y = rng.normal(size=(2, 60))
  x[:12] = 3.0
  y[12:24] = 0.0
  found = within_groups(x, y, groups)
  each = [slow_rho(x[i : i + 12], y[i : i + 12]) for i in (24, 36, 48)]
  assert found.median == pytest.approx(np.median(each), abs=1e-12)
  assert found[1:] == (3, 1, 1)
  order = rng.permutation(60)
  assert within_groups(x[order], y[order], groups[order]) == found


def test_no_group_is_left():
  found = within_groups([1, 1], [1, 2], [[0], [0]])
  assert np.isnan(found.median) and found[1:] == (0, 1, 0)


def test_permutations_stay_within_their_group():
  rng = np.random.default_rng(2)
  x, groups = rng.normal(size=40), np.arange(40) % 2
  found = permuted(x, rng.normal(size=40), groups, 2000, 0)
  assert abs(found.mean()) < 0.02
  # The mean of two independent rhos of 20, each with variance 1 / 19.
  assert np.isclose(found.std(), np.sqrt(1 / 38), rtol=0.06)
  assert np.isnan(permuted(x, groups, groups, 3, 0)).all()
  assert np.isfinite(permuted(x, groups, np.zeros(40), 3, 0)).all()
