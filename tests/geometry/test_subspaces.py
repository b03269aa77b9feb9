import jax
import jax.numpy as jnp
import numpy as np
import one_line
import pytest
import scipy.linalg

from headjax.geometry import (
  embed,
  folded_read_space,
  orthonormal_basis,
  projection_kernel,
  weight_read_space,
  write_space,
)

LAYERS, HEADS, D_MODEL, D_HEAD = 2, 3, 12, 4


def normal(*shape, seed=0):
  return np.random.default_rng(seed).normal(size=shape)


def projector(basis):
  """P of the subspace, from the columns as they are."""
  columns = np.asarray(basis.columns)
  return columns @ columns.swapaxes(-1, -2)


def projector_of(matrix):
  """P of the span of the columns, by SciPy."""
  columns = scipy.linalg.orth(matrix, rcond=1e-6)
  return columns @ columns.T


def jacobian(W, gain, x, *, centred):
  """d(W^T norm(x)) / dx by automatic differentiation, without epsilon."""

  def read(x):
    if centred:
      x = x - x.mean()
    return (gain * x / jnp.sqrt((x**2).mean())) @ W

  return np.asarray(jax.jit(jax.jacobian(read))(x))


def test_a_basis_is_orthonormal_and_spans_the_columns(x64):
  matrix = normal(LAYERS, HEADS, D_MODEL, D_HEAD)
  basis = orthonormal_basis(matrix)
  assert basis.rank.shape == (LAYERS, HEADS)
  assert (basis.rank == D_HEAD).all()
  gram = basis.columns.mT @ basis.columns
  np.testing.assert_allclose(
    gram, np.broadcast_to(np.eye(D_HEAD), gram.shape), atol=1e-14
  )
  np.testing.assert_allclose(projector(basis) @ matrix, matrix, atol=1e-13)


@pytest.mark.parametrize(("ratio", "rank"), [(1.1e-6, 2), (0.9e-6, 1), (0, 1)])
def test_the_rank_counts_what_exceeds_a_millionth_of_the_largest(
  x64, ratio, rank
):
  matrix = np.zeros((3, 2))
  matrix[0, 0], matrix[1, 1] = 5, 5 * ratio
  basis = orthonormal_basis(matrix)
  assert basis.rank == rank
  assert np.linalg.matrix_rank(basis.columns) == rank
  assert not np.asarray(basis.columns)[:, rank:].any()


def test_dependent_columns_are_reported_head_by_head(x64):
  matrix = normal(LAYERS, HEADS, D_MODEL, D_HEAD)
  matrix[0, 1, :, 3] = matrix[0, 1, :, 0] - 2 * matrix[0, 1, :, 2]
  matrix[1, 2] = 0
  basis = orthonormal_basis(matrix)
  assert basis.rank.tolist() == [[4, 3, 4], [4, 4, 0]]
  np.testing.assert_allclose(
    projector(basis)[0, 1], projector_of(matrix[0, 1]), atol=1e-12
  )


def test_rounding_to_float32_does_not_hide_a_missing_dimension():
  matrix = normal(24, 64, 64).astype(np.float32)
  basis = orthonormal_basis(matrix - matrix.mean(axis=1, keepdims=True))
  assert (basis.rank == 63).all()
  product = normal(16, 256, 7).astype(np.float32) @ normal(16, 7, 16, seed=1)
  assert (orthonormal_basis(product).rank == 7).all()


def test_half_precision_is_raised():
  matrix = jnp.asarray(normal(8, 3), jnp.bfloat16)
  assert orthonormal_basis(matrix).columns.dtype == jnp.float32


def test_bad_numbers_stay_visible():
  matrix = jnp.eye(4)[:, :2].at[0, 0].set(jnp.nan)
  assert np.isnan(orthonormal_basis(matrix).columns).any()
  assert np.isnan(projection_kernel(matrix, jnp.eye(4)[:, :2]))


def test_a_wide_matrix_spans_at_most_the_stream():
  basis = orthonormal_basis(normal(3, 5))
  assert basis.columns.shape == (3, 3) and basis.rank == 3


@pytest.mark.parametrize("matrix", [normal(6, 3), np.eye(6)[:, :3]])
def test_derivatives_of_a_projector_are_finite_differences(x64, matrix):
  """Also where all singular values are equal."""
  step = normal(6, 3, seed=1)
  slope = jax.jvp(
    lambda m: jnp.matmul(*_pair(orthonormal_basis(m))),
    (jnp.asarray(matrix),),
    (jnp.asarray(step),),
  )[1]
  change = projector_of(matrix + 1e-6 * step) - projector_of(
    matrix - 1e-6 * step
  )
  np.testing.assert_allclose(slope, change / 2e-6, atol=1e-8)


def _pair(basis):
  return basis.columns, basis.columns.mT


def test_write_and_read_spaces_are_those_of_the_stored_weights(x64):
  W = normal(LAYERS, HEADS, D_MODEL, D_HEAD)
  expected = [[projector_of(head) for head in layer] for layer in W]
  for basis in (weight_read_space(W), write_space(W.swapaxes(-1, -2))):
    np.testing.assert_allclose(projector(basis), expected, atol=1e-12)


@pytest.mark.parametrize("centred", [True, False])
def test_the_folded_space_is_the_row_space_of_the_norms_jacobian(x64, centred):
  """Up to the term of rank one by which the scale of the norm changes."""
  W, x = normal(D_MODEL, D_HEAD), normal(D_MODEL, seed=1) + 3
  gain = 1 + 0.3 * normal(D_MODEL, seed=2)
  centring = np.eye(D_MODEL) - centred / D_MODEL
  sigma = np.sqrt(((centring @ x) ** 2).mean())
  normed = centring @ x / sigma
  A = W.T * gain @ centring
  scale_change = A @ np.outer(normed, normed) @ centring / (D_MODEL * sigma)
  full = jacobian(W, gain, x, centred=centred)
  rows = projector_of((full + scale_change).T)
  basis = folded_read_space(W, gain, centred=centred)
  np.testing.assert_allclose(projector(basis), rows, atol=1e-12)
  assert abs(projector_of(full.T) - rows).max() > 1e-3


def test_the_folded_space_annihilates_what_the_head_cannot_see(x64):
  W, gain = normal(D_MODEL, D_HEAD), 1 + 0.3 * normal(D_MODEL, seed=2)
  P = projector(folded_read_space(W, gain, centred=True))
  A = (W.T * gain) @ (np.eye(D_MODEL) - 1 / D_MODEL)
  kernel = scipy.linalg.null_space(A)
  assert kernel.shape == (D_MODEL, D_MODEL - D_HEAD)
  np.testing.assert_allclose(P @ np.ones(D_MODEL), 0, atol=1e-12)
  np.testing.assert_allclose(P @ kernel, 0, atol=1e-12)
  raw = projector(folded_read_space(W, gain, centred=False))
  assert abs(raw @ np.ones(D_MODEL)).max() > 0.1


def test_gains_and_weights_of_a_whole_model_fold_head_by_head(x64):
  W = normal(LAYERS, HEADS, D_MODEL, D_HEAD)
  gain = 1 + 0.3 * normal(LAYERS, D_MODEL, seed=2)
  basis = folded_read_space(W, gain[:, None], centred=True)
  for layer, head in np.ndindex(LAYERS, HEADS):
    one = folded_read_space(W[layer, head], gain[layer], centred=True)
    np.testing.assert_allclose(
      projector(basis)[layer, head], projector(one), atol=1e-12
    )


def test_a_dead_gain_costs_a_dimension_of_a_full_reader():
  gain = jnp.ones(4).at[2].set(0)
  assert folded_read_space(jnp.eye(4), gain, centred=False).rank == 3


def test_a_block_reader_reads_63_dimensions_of_its_block(x64):
  W, gain = normal(2, 64, 64), 1 + 0.3 * normal(2, 64, seed=1)
  frames = np.linalg.qr(normal(256, 128, seed=2))[0]
  frames = np.moveaxis(frames.reshape(256, 2, 64), 1, 0)
  block = folded_read_space(W, gain, centred=True)
  stream = embed(block, frames)
  assert stream.columns.shape == (2, 256, 64)
  assert stream.rank.tolist() == [63, 63]
  assert folded_read_space(W, gain, centred=False).rank.tolist() == [64, 64]
  for h in range(2):
    # What the stream does to the head: W^T diag(gain) P_c R^T.
    rows = frames[h] @ (np.eye(64) - 1 / 64) @ (gain[h][:, None] * W[h])
    np.testing.assert_allclose(
      projector(stream)[h], projector_of(rows), atol=1e-11
    )


def test_a_gain_that_does_not_fit_is_refused():
  with one_line.refusal(
    "gain: got shape (2, 4); expected [..., d_model] for W"
  ):
    folded_read_space(jnp.ones((2, 3, 4, 2)), jnp.ones((2, 4)), centred=True)
  with one_line.refusal("gain: got shape (2,)"):
    folded_read_space(jnp.ones((4, 2)), jnp.ones(2), centred=True)
