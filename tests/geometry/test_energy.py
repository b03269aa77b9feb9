"""Is energy shared out as by explicit projections of random vectors?"""

import jax.numpy as jnp
import numpy as np
import pytest
from subspace_cases import normal

from headjax.geometry import energy
from headjax.geometry.subspaces import orthonormal_basis


def projector(columns):
  """Onto the span of the columns."""
  return columns @ np.linalg.pinv(columns)


def deficient():
  """`[2, 9, 4]`: one matrix of rank 4, one of rank 2."""
  matrices = normal(2, 9, 4)
  matrices[1, :, 2:] = matrices[1, :, :2] @ normal(2, 2, seed=1)
  return matrices


def test_the_gram_basis_spans_what_the_svd_spans(x64):
  matrices = deficient()
  found, known = energy.gram_basis(matrices), orthonormal_basis(matrices)
  np.testing.assert_array_equal(found.rank, [4, 2])
  np.testing.assert_array_equal(found.rank, known.rank)
  for one, other in zip(found.columns, known.columns, strict=True):
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-12)


def test_the_gram_basis_of_float32_is_float32_and_ranks_it_alike():
  found = energy.gram_basis(jnp.asarray(deficient(), "float32"))
  assert found.columns.dtype == "float32"
  np.testing.assert_array_equal(found.rank, [4, 2])
  assert energy.gram_basis(jnp.zeros((3, 2))).rank == 0


def test_a_direction_that_counts_as_zero_is_left_out(x64):
  """Its square is no zero of float64, so that it must be told from one."""
  u, _, v = np.linalg.svd(normal(9, 4), full_matrices=False)
  matrix = u * [1, 1, 1, 1e-7] @ v
  found = energy.gram_basis(np.stack([[matrix, u]]))
  np.testing.assert_array_equal(found.rank, [[3, 4]])
  known = projector(matrix @ v[:3].T)
  one = found.columns[0, 0]
  np.testing.assert_allclose(one @ one.T, known, atol=1e-9)


@pytest.mark.parametrize("condition", [1e3, 1e5])
def test_the_gram_basis_keeps_directions_that_are_weak_but_there(
  condition, x64
):
  u, _, v = np.linalg.svd(normal(9, 4), full_matrices=False)
  matrix = u * np.geomspace(1, 1 / condition, 4) @ v
  found = energy.gram_basis(matrix)
  assert found.rank == 4
  error = np.abs(found.columns.T @ found.columns - np.eye(4)).max()
  assert error < 1e-14 * condition**2


def test_received_energy_is_that_of_projected_vectors(x64):
  W_O, columns = normal(3, 4, 9), deficient()
  dz = normal(3, 20, 4, seed=2)
  covariance = np.einsum("hne,hnf->hef", dz, dz)
  read = energy.gram_basis(columns).columns.mT
  found = energy.received(
    jnp.asarray(W_O), jnp.asarray(np.stack([covariance, 2 * covariance])), read
  )
  expected = np.zeros((3, 2))
  for writer, reader in np.ndindex(expected.shape):
    delta = dz[writer] @ W_O[writer]
    expected[writer, reader] = np.sum((delta @ projector(columns[reader])) ** 2)
  np.testing.assert_allclose(found[0], expected, rtol=1e-12)
  np.testing.assert_allclose(found[1], 2 * expected, rtol=1e-12)
  total = np.sum((dz @ W_O) ** 2, axis=(1, 2))
  np.testing.assert_allclose(energy.energy(W_O, covariance), total, rtol=1e-12)


def test_isotropic_writes_are_even_over_what_can_be_written(x64):
  W_O = deficient().mT  # the second writes only two dimensions
  covariance = energy.isotropic_covariance(W_O)
  for W, C, rank in zip(W_O, covariance, (4, 2), strict=True):
    np.testing.assert_allclose(W.T @ C @ W, projector(W.T) / rank, atol=1e-12)
  dead = energy.isotropic_covariance(np.zeros((4, 9)))
  np.testing.assert_array_equal(dead, 0)
