import numpy as np
import pytest
from scipy.linalg import subspace_angles

from headjax.geometry.alignment import (
  canonical_correlations,
  consensus,
  overlap,
  weight_cosine,
)
from headjax.geometry.cores import random_core


def test_the_overlap_is_the_sum_of_squared_cosines():
  a, b = random_core(9, 3, 0), random_core(9, 2, 1)
  cosines = np.cos(subspace_angles(a, b))
  assert np.isclose(overlap(a, b), (cosines**2).sum() / np.sqrt(6))
  assert np.isclose(overlap(a, a @ random_core(3, 3, 2)), 1)


def test_random_subspaces_overlap_by_rank_over_dimension():
  found = [
    overlap(random_core(64, 3, i), random_core(64, 3, i + 999))
    for i in range(300)
  ]
  assert abs(np.mean(found) - 3 / 64) < 0.003


def correlated(n=500, seed=0):
  rng = np.random.default_rng(seed)
  shared = rng.normal(size=(n, 2))
  a = np.hstack([shared, rng.normal(size=(n, 1))])
  b = np.hstack([shared + 0.5 * rng.normal(size=(n, 2)), a[:, 2:] ** 2])
  return a @ rng.normal(size=(3, 3)) + 4, b @ rng.normal(size=(3, 3))


def test_canonical_correlations_are_roots_of_the_eigenvalue_problem():
  a, b = correlated()
  both = np.cov(a.T, b.T)
  aa, ab, bb = both[:3, :3], both[:3, 3:], both[3:, 3:]
  square = np.linalg.eigvals(
    np.linalg.solve(aa, ab @ np.linalg.solve(bb, ab.T))
  )
  expected = np.sqrt(np.sort(square.real)[::-1])
  np.testing.assert_allclose(canonical_correlations(a, b), expected, atol=1e-9)


def test_a_linear_map_of_the_coordinates_changes_nothing():
  a, b = correlated()
  rng = np.random.default_rng(3)
  moved = a @ rng.normal(size=(3, 3)) + 100
  np.testing.assert_allclose(
    canonical_correlations(moved, b), canonical_correlations(a, b), atol=1e-9
  )
  np.testing.assert_allclose(canonical_correlations(a, moved), 1, atol=1e-9)


def test_directions_without_variance_are_dropped():
  a, b = correlated()
  double = np.hstack([a, a @ np.ones((3, 1)), np.full((len(a), 1), 0.1)])
  np.testing.assert_allclose(
    canonical_correlations(double, b), canonical_correlations(a, b), atol=1e-9
  )
  assert canonical_correlations(a, np.full((len(a), 2), 0.1)).size == 0


def test_the_consensus_is_what_all_views_share():
  rng = np.random.default_rng(0)
  shared = rng.normal(size=(200, 2))
  shared -= shared.mean(0)
  holds = [random_core(8, 2, seed) for seed in range(3)]
  views = []
  for hold in holds:
    rest = np.eye(8) - hold @ hold.T
    own = rng.normal(size=(200, 8)) @ rest
    # Noise that is exactly uncorrelated with what is shared.
    own -= shared @ np.linalg.lstsq(shared, own)[0]
    views.append(shared @ hold.T + own + 3)
  found = consensus(views, 2)
  np.testing.assert_allclose(found.agreement, 1, atol=1e-9)
  back = shared - found.shared @ (found.shared.T @ shared)
  assert np.abs(back).max() < 1e-9
  for basis, hold in zip(found.bases, holds, strict=True):
    assert np.isclose(overlap(basis, hold), 1)


def test_independent_views_agree_no_more_than_one_of_them():
  rng = np.random.default_rng(0)
  views = [rng.normal(size=(20000, 2)) for _ in range(4)]
  np.testing.assert_allclose(consensus(views, 2).agreement, 0.25, atol=0.02)


def test_the_weight_cosine_is_that_of_all_parameters():
  a = {"x": np.array([1.0, 0]), "y": {"z": np.array([[2.0]])}}
  b = {"x": np.array([0, 3.0]), "y": {"z": np.array([[4.0]])}}
  assert np.isclose(weight_cosine(a, b), 8 / (np.sqrt(5) * 5))
  with pytest.raises(ValueError, match="parameters: got two different trees"):
    weight_cosine(a, {"x": a["x"]})


def test_bad_input_is_refused():
  rows = np.ones((5, 2))
  with pytest.raises(ValueError, match="subspaces: got shapes"):
    overlap(np.eye(3), np.eye(4))
  with pytest.raises(ValueError, match="views: got shapes"):
    canonical_correlations(rows, rows[:4])
  with pytest.raises(ValueError, match="rank: got 3; expected 1 to 2"):
    views = [np.random.default_rng(i).normal(size=(5, 1)) for i in range(2)]
    consensus(views, 3)
