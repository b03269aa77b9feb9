"""Norms, rotary angles and embeddings: the parts of a model without heads."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from headjax.models.config import ModelConfig

INIT = nn.initializers.normal(0.02)


def wide(dtype) -> jnp.dtype:
  """The type for norms, angles and softmax: at least float32."""
  return jnp.promote_types(dtype, jnp.float32)


def rows(x: jax.Array, weight: jax.Array) -> jax.Array:
  """`x @ weight` over all of `x`'s leading axes as rows of one product.

  A two-dimensional product is what CPUs are fast at.
  """
  flat = x.reshape(-1, x.shape[-1]) @ weight.astype(x.dtype)
  return flat.reshape(*x.shape[:-1], weight.shape[-1])


def shift(x: jax.Array, bias: jax.Array) -> jax.Array:
  """`x + bias`, with the bias aligned to the trailing axes of `x`."""
  missing = x.ndim - bias.ndim
  return x + bias.astype(x.dtype).reshape((1,) * missing + bias.shape)


class Norm(nn.Module):
  """LayerNorm, RMSNorm or nothing, over the last axis.

  Attributes:
    config: of the model.
    n_axes: how many of the last axes have gains and biases of their own: 2
      for one norm per head.
  """

  config: ModelConfig
  n_axes: int = 1

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    kind, shape = self.config.norm, x.shape[x.ndim - self.n_axes :]
    if kind == "none":
      return x
    y = x.astype(wide(x.dtype))
    if kind == "layernorm":
      y = y - y.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt(
      (y * y).mean(-1, keepdims=True) + self.config.norm_eps
    )
    y = (y * scale).astype(x.dtype)
    gain = self.param("gain", nn.initializers.ones, shape)
    y = y * gain.astype(x.dtype).reshape((1,) * (x.ndim - len(shape)) + shape)
    if kind == "layernorm":
      y = shift(y, self.param("bias", nn.initializers.zeros, shape))
    return y


class Embedding(nn.Module):
  """Token embedding plus, where the model has one, the position table."""

  config: ModelConfig

  def setup(self):
    config = self.config
    shape = (config.d_vocab, config.d_model)
    self.W_E = self.param("W_E", INIT, shape)
    if config.positions == "learned":
      self.W_pos = self.param("W_pos", INIT, (config.n_ctx, config.d_model))

  def __call__(self, tokens: jax.Array, positions: jax.Array) -> jax.Array:
    resid = self.W_E[tokens]
    if self.config.positions == "learned":
      resid = resid + self.W_pos[positions]
    return resid


def rotate(x: jax.Array, positions: jax.Array, theta: float) -> jax.Array:
  """Rotary position embedding in half-rotation form.

  Coordinates `i` and `i + d_head / 2` form a plane, turned by
  `position * theta ** (-2 i / d_head)` radians.

  Args:
    x: `[batch, pos, head, d_head]`.
    positions: `[batch, pos]`, in tokens.
    theta: base of the frequencies.

  Returns:
    `[batch, pos, head, d_head]` in the type of `x`.
  """
  dtype = wide(x.dtype)
  half = x.shape[-1] // 2
  frequency = theta ** (-jnp.arange(half, dtype=dtype) / half)
  angle = positions.astype(dtype)[:, :, None, None] * frequency.reshape(
    1, 1, 1, half
  )
  cos, sin = jnp.cos(angle), jnp.sin(angle)
  first, second = jnp.split(x.astype(dtype), 2, axis=-1)
  turned = (first * cos - second * sin, second * cos + first * sin)
  return jnp.concatenate(turned, axis=-1).astype(x.dtype)
