import jax
import jax.numpy as jnp
import numpy as np
import one_line
import pytest

from headjax.geometry import (
  Factored,
  ov_circuit,
  qk_circuit,
  scaled_idempotence,
)

LAYERS, HEADS, D_MODEL, D_HEAD = 2, 3, 7, 4


@pytest.fixture
def weights(x64):
  """W_Q, W_K, W_V and W_O of all heads."""
  rng = np.random.default_rng(0)
  read = [rng.normal(size=(LAYERS, HEADS, D_MODEL, D_HEAD)) for _ in range(3)]
  return *read, rng.normal(size=(LAYERS, HEADS, D_HEAD, D_MODEL))


@pytest.fixture
def ov(weights):
  """The factored OV circuit and the dense matrix."""
  _, _, W_V, W_O = weights
  return ov_circuit(jnp.asarray(W_V), jnp.asarray(W_O)), W_V @ W_O


def test_circuits_are_what_a_head_does_to_row_vectors(weights):
  W_Q, W_K, W_V, W_O = weights
  x, y = np.random.default_rng(1).normal(size=(2, D_MODEL))
  for index in np.ndindex(LAYERS, HEADS):
    written = (x @ W_V[index]) @ W_O[index]
    score = (x @ W_Q[index]) @ (y @ W_K[index])
    ov = ov_circuit(W_V, W_O).product()[index]
    qk = qk_circuit(W_Q, W_K).product()[index]
    np.testing.assert_allclose(x @ ov, written, rtol=1e-12)
    np.testing.assert_allclose(x @ qk @ y, score, rtol=1e-12)


def test_numbers_of_a_factored_matrix_are_those_of_the_dense_one(ov):
  factored, dense = ov
  np.testing.assert_allclose(factored.product(), dense, rtol=1e-12)
  np.testing.assert_allclose(
    factored.norm(), np.linalg.norm(dense, axis=(-2, -1)), rtol=1e-12
  )
  np.testing.assert_allclose(
    factored.trace(), np.trace(dense, axis1=-2, axis2=-1), rtol=1e-12
  )


def test_eigenvalues_are_the_nonzero_ones_of_the_dense_matrix(ov):
  factored, dense = ov
  small = np.asarray(factored.eigenvalues())
  for index in np.ndindex(LAYERS, HEADS):
    large = np.linalg.eigvals(dense[index])
    large = large[np.argsort(abs(large))[-D_HEAD:]]
    np.testing.assert_allclose(
      np.sort_complex(small[index]), np.sort_complex(large), atol=1e-10
    )


@pytest.mark.parametrize("library", [np, jnp])
def test_products_with_dense_matrices_are_right_from_either_side(ov, library):
  factored, dense = ov
  x = np.random.default_rng(1).normal(size=(LAYERS, HEADS, D_MODEL, D_MODEL))
  np.testing.assert_allclose(factored @ library.asarray(x), dense @ x)
  np.testing.assert_allclose(library.asarray(x) @ factored, x @ dense)


def test_a_product_of_two_circuits_stays_factored(ov):
  factored, dense = ov
  twice = factored @ factored.T
  assert isinstance(twice, Factored) and twice.left.shape[-1] == D_HEAD
  np.testing.assert_allclose(
    twice.product(), dense @ dense.swapaxes(-1, -2), atol=1e-12
  )


def test_circuits_pass_through_compiled_code(ov):
  factored, dense = ov
  np.testing.assert_allclose(
    jax.jit(lambda f: f.T)(factored).T.product(), dense
  )


def test_scaled_idempotence_is_its_definition_on_the_dense_matrix(ov):
  factored, dense = ov
  result = scaled_idempotence(factored)
  assert result.shape == (LAYERS, HEADS)
  for index in np.ndindex(LAYERS, HEADS):
    T = dense[index]
    along = np.sum((T @ T) * T)
    expected = along**2 / (np.sum((T @ T) ** 2) * np.sum(T**2))
    np.testing.assert_allclose(result[index], expected, rtol=1e-12)
  np.testing.assert_allclose(scaled_idempotence(factored.T), result)


@pytest.mark.parametrize("scale", [3.0, -0.2])
def test_a_multiple_of_a_projection_is_fully_idempotent(x64, scale):
  basis = np.linalg.qr(np.random.default_rng(0).normal(size=(7, 3)))[0]
  circuit = ov_circuit(jnp.asarray(scale * basis), jnp.asarray(basis.T))
  np.testing.assert_allclose(scaled_idempotence(circuit), 1, rtol=1e-12)


def test_a_map_that_vanishes_when_repeated_has_no_idempotence():
  circuit = ov_circuit(jnp.eye(4)[:, :2], jnp.eye(4)[2:])
  assert np.isnan(scaled_idempotence(circuit))


def test_gradients_of_idempotence_are_finite(ov):
  factored, _ = ov
  slope = jax.jit(jax.grad(lambda f: scaled_idempotence(f).sum()))(factored)
  for leaf in jax.tree.leaves(slope):
    assert np.isfinite(leaf).all() and abs(leaf).max() > 0


def test_weights_of_different_head_widths_are_refused():
  with one_line.refusal("d_head: got 4 and 3"):
    ov_circuit(jnp.ones((7, 4)), jnp.ones((3, 7)))
  with one_line.refusal("d_head: got 4 and 3"):
    qk_circuit(jnp.ones((7, 4)), jnp.ones((7, 3)))


def test_only_a_square_matrix_has_a_trace():
  with one_line.refusal("trace: got a 7 x 5 matrix"):
    Factored(jnp.ones((7, 2)), jnp.ones((2, 5))).trace()
