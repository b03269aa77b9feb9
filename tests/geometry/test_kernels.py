import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from subspace_cases import normal, rotation

from headjax.geometry import (
  conservation,
  pairwise_projection_kernel,
  principal_angles,
  projection_kernel,
  projection_share,
)


def slow_kernel(a, b):
  """|Q_a^T Q_b|^2, one pair of columns at a time."""
  a, b = scipy.linalg.orth(a), scipy.linalg.orth(b)
  return sum((x @ y) ** 2 for x in a.T for y in b.T)


def decomposition(n_heads, d_head, seed=0):
  """Write spaces [head, d_model, d_head] that tile the stream."""
  turn = rotation(n_heads * d_head, seed)
  return np.moveaxis(turn.reshape(-1, n_heads, d_head), 1, 0)


def test_the_kernel_is_the_sum_of_squared_cosines(x64):
  a, b = normal(4, 9, 3), normal(4, 9, 5, seed=1)
  cosines = np.cos(principal_angles(a, b))
  pk = projection_kernel(a, b)
  np.testing.assert_allclose(pk, (cosines**2).sum(axis=-1), rtol=1e-13)
  np.testing.assert_allclose(pk, list(map(slow_kernel, a, b)), rtol=1e-13)
  np.testing.assert_allclose(projection_share(a, b), pk / 3, rtol=1e-13)


def test_coordinate_blocks_overlap_exactly():
  blocks = jnp.eye(768).reshape(768, 12, 64).swapaxes(0, 1)
  pk = pairwise_projection_kernel(blocks, blocks)
  assert np.array_equal(pk, 64 * np.eye(12))


def test_random_subspaces_overlap_by_their_share_of_the_stream(x64):
  pk = pairwise_projection_kernel(normal(60, 24, 4), normal(60, 24, 6, seed=1))
  np.testing.assert_allclose(pk.mean(), 4 * 6 / 24, rtol=0.02)


@pytest.mark.parametrize("lead", [(), (2,), (2, 2)])
def test_all_pairs_are_single_pairs(x64, lead):
  a, b = normal(*lead, 3, 9, 2), normal(*lead, 4, 9, 5, seed=1)
  pairs = pairwise_projection_kernel(a, b)
  assert pairs.shape == (*lead, 3, 4)
  for *where, i, j in np.ndindex(pairs.shape):
    one = slow_kernel(a[*where, i], b[*where, j])
    np.testing.assert_allclose(pairs[*where, i, j], one, rtol=1e-12)


def test_dependent_columns_count_once_in_a_kernel(x64):
  a = np.eye(4)[:, [0, 0, 1]]
  assert np.isclose(projection_kernel(a, np.eye(4)), 2, rtol=0, atol=1e-14)
  assert np.isclose(projection_share(a, np.eye(4)), 1, rtol=0, atol=1e-14)


def test_the_share_of_an_empty_space_is_undefined():
  assert np.isnan(projection_share(jnp.zeros((3, 1)), jnp.eye(3)))


def test_a_layer_of_orthogonal_writes_shares_a_readers_whole_dimension(x64):
  layers = np.stack([decomposition(6, 4, seed) for seed in range(3)])
  readers = normal(3, 24, 5, seed=9)
  readers[2, :, 4] = readers[2, :, 0]
  total, dimension = conservation(layers, readers)
  assert dimension.tolist() == [5, 5, 4]
  np.testing.assert_allclose(total, dimension, rtol=0, atol=1e-9)
  one, _ = conservation(layers, readers[:1])
  np.testing.assert_allclose(one, 5, rtol=0, atol=1e-9)


def test_a_layer_whose_writes_overlap_breaks_conservation(x64):
  writes = decomposition(6, 4)
  writes[5] = writes[0]
  total, dimension = conservation(writes, normal(24, 5))
  assert abs(total - dimension) > 0.1
  total, dimension = conservation(normal(6, 24, 4), normal(24, 5, seed=1))
  assert abs(total - dimension) > 0.1
