"""What is the next-token loss, without all logits in memory at once?

The loss is a number, so its gradient is known up to a factor as soon as the
logits are there. Each portion of rows therefore computes its logits once, adds
to the loss and to both gradients, and forgets them: three matrix products, as
many as with all logits kept.
"""

import functools

import jax
import jax.numpy as jnp

from headjax.models.layers import wide


def cross_entropy(
  x: jax.Array, W_U: jax.Array, targets: jax.Array, *, n_rows: int
) -> jax.Array:
  """The mean over positions of -log p(target), in nats.

  Args:
    x: `[batch, pos, d_model]`, the stream after the final norm.
    W_U: `[vocab, d_model]`, the unembedding directions.
    targets: `[batch, pos]` int, the next tokens.
    n_rows: positions whose logits are in memory at once, over all sequences.

  Returns:
    A float32 scalar (float64 for float64 `x`).
  """
  batch, pos = targets.shape
  # Portions of positions keep the batch whole, so that its shards stay put.
  width = max(1, min(pos, n_rows // batch))
  while pos % width:
    width -= 1
  return _mean(width, x, W_U, targets)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _mean(width, x, W_U, targets):
  def portion(total, part):
    logits, true = _logits(*part, W_U)
    return total + (jax.nn.logsumexp(logits, -1) - true).sum(), None

  parts = (_split(x, width), _split(targets, width))
  zero = jnp.zeros((), wide(x.dtype))
  return jax.lax.scan(portion, zero, parts)[0] / targets.size


def _forward(width, x, W_U, targets):
  def portion(carry, part):
    total, dW = carry
    rows, target = part
    logits, true = _logits(rows, target, W_U)
    top = logits.max(-1, keepdims=True)
    shares = jnp.exp(logits - top)
    norm = shares.sum(-1, keepdims=True)
    total += (jnp.log(norm) + top)[..., 0].sum() - true.sum()
    hot = jax.nn.one_hot(target, W_U.shape[0], dtype=shares.dtype)
    error = ((shares / norm - hot) / targets.size).astype(x.dtype)
    dW += jnp.einsum(
      "bpv,bpd->vd", error, rows, preferred_element_type=dW.dtype
    )
    return (total, dW), jnp.einsum("bpv,vd->bpd", error, W_U)

  parts = (_split(x, width), _split(targets, width))
  start = (jnp.zeros((), wide(x.dtype)), jnp.zeros(W_U.shape, wide(x.dtype)))
  (total, dW), dx = jax.lax.scan(portion, start, parts)
  dx = jnp.moveaxis(dx, 0, 1).reshape(x.shape)
  return total / targets.size, (dx, dW.astype(W_U.dtype))


def _backward(width, gradients, cotangent):
  dx, dW = gradients
  return dx * cotangent.astype(dx.dtype), dW * cotangent.astype(dW.dtype), None


_mean.defvjp(_forward, _backward)


def _logits(rows, target, W_U):
  """Logits `[batch, width, vocab]`, and those of the targets."""
  logits = jnp.einsum(
    "bpd,vd->bpv", rows, W_U, preferred_element_type=wide(rows.dtype)
  )
  true = jnp.take_along_axis(logits, target[..., None], axis=-1)[..., 0]
  return logits, true


def _split(array, width):
  """`[portion, batch, width, ...]`."""
  batch, pos, *rest = array.shape
  return jnp.moveaxis(array.reshape(batch, pos // width, width, *rest), 1, 0)
