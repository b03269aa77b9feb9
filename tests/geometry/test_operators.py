import numpy as np
import pytest

from headjax.geometry.operators import (
  cyclic_operator,
  dynamics,
  eigenvalue_error,
  mode_indices,
  residue_means,
  sorted_eigenvalues,
)


def roots(p, numbers):
  return np.exp(2j * np.pi * np.asarray(numbers) / p)


def circle(p, frequencies, scale=1.0):
  """`[p, 2 k]`: every residue on k circles."""
  angle = 2 * np.pi * np.outer(np.arange(p), frequencies) / p
  return scale * np.hstack([np.cos(angle), np.sin(angle)])


def test_a_known_map_is_found_whatever_the_coordinates():
  rng = np.random.default_rng(0)
  A = np.array([[0.9, 0.2, 0], [-0.2, 0.9, 0], [0, 0, 0.4]])
  now = rng.normal(size=(50, 3)) + 5
  found = dynamics(now, now @ A.T - 3)
  np.testing.assert_allclose(found.matrix, A, atol=1e-12)
  expected = [0.9 + 0.2j, 0.9 - 0.2j, 0.4]
  np.testing.assert_allclose(found.eigenvalues, expected, atol=1e-12)
  assert np.isclose(found.r2, 1) and np.isclose(found.r2_pooled, 1)
  turn = rng.normal(size=(3, 3))
  other = dynamics(now @ turn, (now @ A.T - 3) @ turn)
  np.testing.assert_allclose(other.eigenvalues, expected, atol=1e-10)


def test_r2_is_a_mean_over_coordinates_or_pooled():
  now = np.array([[1.0, 1], [-1, 1], [1, -1], [-1, -1]])
  # Orthogonal to both coordinates: no linear function of them.
  noise = now[:, :1] * now[:, 1:]
  then = np.hstack([now[:, :1] + noise, 3 * now[:, 1:]])
  found = dynamics(now, then)
  assert np.isclose(found.r2, (0.5 + 1) / 2)
  assert np.isclose(found.r2_pooled, 1 - 4 / (8 + 36))


def test_a_constant_future_has_no_r2():
  now = np.arange(6.0).reshape(3, 2)
  found = dynamics(now, np.ones((3, 2)))
  assert np.isnan(found.r2) and np.isnan(found.r2_pooled)
  np.testing.assert_allclose(found.eigenvalues, 0)


def test_eigenvalue_errors_are_relative_and_matched():
  expected = np.array([0.75 + 0.25j, 0.75 - 0.25j, 0.5])
  moved = np.array([0.5, 0.75 - 0.25j, 0.75 + 0.26j])
  error = eigenvalue_error(moved, expected)
  assert np.isclose(error, 0.01 / abs(0.75 + 0.25j))
  with pytest.raises(ValueError, match="eigenvalues: got 2; expected 3"):
    eigenvalue_error(moved[:2], expected)


@pytest.mark.parametrize("p", [5, 11, 53])
def test_exact_roots_of_unity_come_back(p):
  rng = np.random.default_rng(p)
  frequencies = [1, 2] if p == 5 else [1, 3, 5]
  turn = rng.normal(size=(2 * len(frequencies), 20))
  found = cyclic_operator(circle(p, frequencies) @ turn + 4)
  numbers = [sign * k for k in frequencies for sign in (1, -1)]
  expected = sorted_eigenvalues(np.diag(roots(p, numbers)))
  assert eigenvalue_error(found.eigenvalues, expected) < 1e-9
  assert found.near_unit.all()
  assert found.modes == tuple(frequencies)
  assert np.isclose(found.r2, 1)


def test_held_out_pairs_tell_a_rotation_from_random_points():
  rng = np.random.default_rng(0)
  turned = cyclic_operator(circle(23, [2, 7]) @ rng.normal(size=(4, 9)), 3)
  assert np.isclose(turned.r2_held_out, 1)
  random = cyclic_operator(rng.normal(size=(23, 40)), 3)
  # Enough directions to fit anything, and to predict nothing.
  assert np.isclose(random.r2, 1)
  assert random.r2_held_out < 0.5


def test_a_shrinking_map_is_not_near_the_circle():
  p = 31
  means = circle(p, [4])
  means *= 0.8 ** np.arange(p)[:, None]
  found = cyclic_operator(means, held_out=1)
  assert not found.near_unit.any() and found.modes == ()
  # Forward it shrinks; the inverse map would grow.
  assert np.abs(found.eigenvalues).max() < 1


def test_constant_means_have_no_spectrum():
  found = cyclic_operator(np.full((7, 3), 0.1))
  assert found.eigenvalues.size == 0 and found.modes == ()
  assert np.isnan(found.r2) and np.isnan(found.r2_held_out)


def test_mode_numbers_are_folded():
  numbers = np.array([0, 1, 26, 27, 52])
  found = mode_indices(0.9 * roots(53, numbers), 53)
  assert found.tolist() == [0, 1, 26, 26, 1]


def test_residue_means_are_those_of_a_loop():
  rng = np.random.default_rng(0)
  Z, c = rng.normal(size=(40, 2)), np.arange(40) % 7
  expected = [Z[c == i].mean(0) for i in range(7)]
  np.testing.assert_allclose(residue_means(Z, c, 7), expected)
  with pytest.raises(ValueError, match="residues: got 7 different"):
    residue_means(Z, c, 8)


def test_bad_input_is_refused():
  with pytest.raises(ValueError, match="states: got shapes"):
    dynamics(np.ones((4, 2)), np.ones((3, 2)))
  with pytest.raises(ValueError, match="held_out: got 6 of 7"):
    cyclic_operator(np.ones((7, 3)), 6)
