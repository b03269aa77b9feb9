import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headjax.training.loss import cross_entropy

BATCH, POS, D, VOCAB = 3, 8, 5, 11


def example(seed=0):
  rng = np.random.default_rng(seed)
  x = rng.normal(size=(BATCH, POS, D))
  W_U = rng.normal(size=(VOCAB, D))
  return x, W_U, rng.integers(0, VOCAB, (BATCH, POS))


def slow(x, W_U, targets):
  """The loss and its gradients, one position at a time in NumPy."""
  loss, dx, dW = 0.0, np.zeros_like(x), np.zeros_like(W_U)
  for b in range(BATCH):
    for p in range(POS):
      logits = W_U @ x[b, p]
      shares = np.exp(logits - logits.max())
      shares /= shares.sum()
      loss -= np.log(shares[targets[b, p]])
      shares[targets[b, p]] -= 1
      dx[b, p] = shares @ W_U
      dW += np.outer(shares, x[b, p])
  n = BATCH * POS
  return loss / n, dx / n, dW / n


@pytest.mark.parametrize("n_rows", [1, 6, 12, 13, 24, 1000])
def test_loss_and_gradients_are_those_of_the_slow_loop(n_rows, x64):
  x, W_U, targets = example()
  loss, (dx, dW) = jax.jit(
    jax.value_and_grad(
      lambda x, W: 3 * cross_entropy(x, W, targets, n_rows=n_rows), (0, 1)
    )
  )(x, W_U)
  want = slow(x, W_U, targets)
  np.testing.assert_allclose(loss, 3 * want[0], rtol=1e-12)
  np.testing.assert_allclose(dx, 3 * want[1], rtol=1e-10, atol=1e-14)
  np.testing.assert_allclose(dW, 3 * want[2], rtol=1e-10, atol=1e-14)


def test_the_loss_alone_is_the_same_as_beside_its_gradient(x64):
  x, W_U, targets = example(1)
  alone = cross_entropy(x, W_U, targets, n_rows=6)
  np.testing.assert_allclose(alone, slow(x, W_U, targets)[0], rtol=1e-12)


def test_large_logits_neither_overflow_nor_vanish():
  x, W_U, targets = (jnp.asarray(a) for a in example(2))
  x, W_U = x.astype(jnp.float32) * 1e3, W_U.astype(jnp.float32)
  loss, (dx, dW) = jax.value_and_grad(
    lambda x, W: cross_entropy(x, W, targets, n_rows=6), (0, 1)
  )(x, W_U)
  assert (
    jnp.isfinite(loss) and jnp.isfinite(dx).all() and jnp.isfinite(dW).all()
  )
  assert loss > 100


def test_half_precision_sums_in_float32():
  x, W_U, targets = example(3)
  half = cross_entropy(
    jnp.asarray(x, jnp.bfloat16),
    jnp.asarray(W_U, jnp.bfloat16),
    targets,
    n_rows=6,
  )
  assert half.dtype == jnp.float32
  np.testing.assert_allclose(half, slow(x, W_U, targets)[0], rtol=2e-2)


def test_the_logits_of_few_rows_exist_at_once():
  """No buffer of the compiled gradient is as large as all logits."""

  def gradient(x, W):
    return jax.grad(
      lambda x, W: cross_entropy(x, W, jnp.zeros((4, 64), int), n_rows=32),
      (0, 1),
    )(x, W)

  shapes = (jnp.zeros((4, 64, 8)), jnp.zeros((4096, 8)))
  memory = jax.jit(gradient).lower(*shapes).compile().memory_analysis()
  assert memory.temp_size_in_bytes < 4 * 64 * 4096 * 4 / 2
