"""Norms, rotary angles and embeddings: the parts of a model without heads."""

import math

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

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


def rows_by_head(x: jax.Array, weight: jax.Array) -> jax.Array:
  """`rows` of a `weight` whose last axes are `[head, d_head]`."""
  d_model, *heads = weight.shape
  return rows(x, weight.reshape(d_model, -1)).reshape(*x.shape[:-1], *heads)


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
    if kind in ("layernorm", "layernorm_bare"):
      y = y - y.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt(
      (y * y).mean(-1, keepdims=True) + self.config.norm_eps
    )
    y = y * scale
    if kind == "layernorm_bare":
      return y.astype(x.dtype)
    offset = kind == "rmsnorm_offset"
    init = nn.initializers.zeros if offset else nn.initializers.ones
    gain = self.param("gain", init, shape)
    gain = gain.reshape((1,) * (x.ndim - len(shape)) + shape)
    if offset:  # Gemma's, whose small gains need the wide type
      return (y * (1 + gain.astype(y.dtype))).astype(x.dtype)
    y = y.astype(x.dtype) * gain.astype(x.dtype)
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
    if self.config.embed_scale != 1:
      resid = resid * jnp.asarray(self.config.embed_scale, resid.dtype)
    if self.config.positions == "learned":
      resid = resid + self.W_pos[positions]
    return resid

  def directions(self, tokens: jax.Array) -> jax.Array:
    """`[..., d_model]`: the tied unembedding of some tokens."""
    return self.W_E[tokens]

  def all_directions(self) -> jax.Array:
    """`[vocab, d_model]`: the tied unembedding of all tokens."""
    return self.W_E


class UnitEmbedding(nn.Module):
  """Token embedding whose rows have unit norm, with one scale in and one out.

  The scales are the exponentials of s_E and, for the unembedding, of s_F.

  Source: Multiscreen, arXiv 2604.01178v3.
  """

  config: ModelConfig

  def setup(self):
    config = self.config
    init = nn.initializers.normal(0.1 / config.d_model**0.5)
    self.W_E = self.param("W_E", init, (config.d_vocab, config.d_model))
    self.s_E = self.param("s_E", nn.initializers.zeros, ())
    final = nn.initializers.constant(0.5 * math.log(config.d_model))
    self.s_F = self.param("s_F", final, ())

  def __call__(self, tokens: jax.Array, positions: jax.Array) -> jax.Array:
    return jnp.exp(self.s_E) * unit(self.W_E[tokens])

  def directions(self, tokens: jax.Array) -> jax.Array:
    """`[..., d_model]`: the tied unembedding of some tokens."""
    return jnp.exp(self.s_F) * unit(self.W_E[tokens])

  def all_directions(self) -> jax.Array:
    """`[vocab, d_model]`: the tied unembedding of all tokens."""
    return jnp.exp(self.s_F) * unit(self.W_E)


def unit(x: jax.Array) -> jax.Array:
  """Vectors along the last axis at length 1; 0 stays 0, with gradient 0."""
  y = x.astype(wide(x.dtype))
  square = (y * y).sum(-1, keepdims=True)
  # The square of a tiny vector underflows: it has no direction left.
  alive = square > jnp.finfo(y.dtype).tiny
  scale = jax.lax.rsqrt(jnp.where(alive, square, 1))
  return jnp.where(alive, y * scale, 0).astype(x.dtype)


def bend(x: jax.Array, cap: float | None) -> jax.Array:
  """`cap * tanh(x / cap)`, near `x` where that is small; None: `x`."""
  if cap is None:
    return x
  y = cap * jnp.tanh(x.astype(wide(x.dtype)) / cap)
  return y.astype(x.dtype)


def rotate(
  x: jax.Array, positions: jax.Array, frequencies: np.ndarray
) -> jax.Array:
  """Rotary position embedding in half-rotation form.

  Of the first `2 * len(frequencies)` coordinates, `i` and `i + half` form a
  plane, turned by `position * frequencies[i]`. The others stay.

  Args:
    x: `[batch, pos, head, d_head]`.
    positions: `[batch, pos]`, in tokens.
    frequencies: `[half]`, radians per token.

  Returns:
    `[batch, pos, head, d_head]` in the type of `x`.
  """
  dtype, half = wide(x.dtype), len(frequencies)
  frequencies = jnp.asarray(frequencies, dtype).reshape(1, 1, 1, half)
  angle = positions.astype(dtype)[:, :, None, None] * frequencies
  cos, sin = jnp.cos(angle), jnp.sin(angle)
  y = x.astype(dtype)
  first, second = y[..., :half], y[..., half : 2 * half]
  turned = [first * cos - second * sin, second * cos + first * sin]
  rest = [y[..., 2 * half :]] if 2 * half < x.shape[-1] else []
  return jnp.concatenate(turned + rest, axis=-1).astype(x.dtype)
