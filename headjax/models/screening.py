"""How do heads attend without softmax? Each key passes or fails by itself.

A key passes a query if the two are similar enough and it is near enough. No
key competes with another, so the weights of a query need not sum to 1, and a
head whose keys all fail writes nothing.

Source: Multiscreen, arXiv 2604.01178v3.
"""

import math

import flax.linen as nn
import jax
import jax.numpy as jnp

from headjax.models import sites
from headjax.models.layers import rows_by_head, unit, wide
from headjax.models.reading import Reads
from headjax.models.sites import Edits
from headjax.models.softmax import (
  KV,
  Context,
  allowed,
  concatenate,
  mixture,
  products,
)
from headjax.models.writing import Writing


class Screening(Writing):
  """Screening heads, each with a window and an acceptance width of its own.

  The scalars of a head: its window is exp(s_w) + 1 tokens, its acceptance
  width sigmoid(s_r), and the scale of its output exp(s_O).
  """

  def setup(self):
    config = self.config
    d_model, heads = config.d_model, config.n_heads
    for letter, width, deviation in (
      ("Q", config.d_key, 0.1 / config.d_key**0.5),
      ("K", config.d_key, 0.1 / config.d_key**0.5),
      ("V", config.d_head, 0.1 / config.d_head**0.5),
      ("G", config.d_head, 0.1),
    ):
      init = nn.initializers.normal(deviation)
      weight = self.param(f"W_{letter}", init, (d_model, heads, width))
      setattr(self, f"W_{letter}", weight)
    self.set_up_write(0.1 / d_model**0.5)
    self.s_w = self.param("s_w", self._init_windows)
    self.s_r = self.param("s_r", nn.initializers.zeros, (heads,))
    level = nn.initializers.constant(-0.5 * math.log(heads * config.n_layers))
    self.s_O = self.param("s_O", level, (heads,))

  def _init_windows(self, key):
    """Windows from 2 to `screening_window` + 1, evenly in their logarithm."""
    config = self.config
    return jnp.linspace(0, math.log(config.screening_window), config.n_heads)

  def project(self, reads: Reads, letters: str) -> list[jax.Array]:
    """Queries, keys or values, before they are brought to unit length.

    Args:
      reads: the normalised stream.
      letters: of "QKV", or G for the gates before their nonlinearity.

    Returns:
      `[batch, pos, head, d_key]`, of values and gates `[..., d_head]`.
    """
    return [
      rows_by_head(reads.whole, getattr(self, f"W_{letter}"))
      for letter in letters
    ]

  def inputs(self, reads: Reads) -> dict[str, jax.Array]:
    """What each head's maps make of the stream: Q, K, V and G, its gate.

    Returns:
      `[batch, pos, head, width]` for each letter.
    """
    letters = "QKVG"
    return dict(zip(letters, self.project(reads, letters), strict=True))

  def place(self, k: jax.Array, v: jax.Array, context: Context) -> KV:
    """Keys and values ready to be attended to."""
    return KV(self._turn(unit(k), context), unit(v), context)

  def mix(
    self,
    window: jax.Array,
    q: jax.Array,
    reads: Reads,
    context: Context,
    parts: tuple[KV, ...],
    edits: Edits,
  ) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Scores, pattern and z of some queries.

    Args:
      window: the layer's, 0: the heads have windows of their own.
      q: `[batch, query_pos, head, d_key]`.
      reads: the queries' rows of the normalised stream, for the gates.
      context: of the queries.
      parts: keys and values, from `place`.
      edits: of `scores` and `pattern`; no edit of the scores can unmask a key.

    Returns:
      `scores` and `pattern`, `[batch, head, query_pos, key_pos]` with the keys
      of all parts in order, and `z`, `[batch, query_pos, head, d_head]`.
    """
    scores = products(self._turn(unit(q), context), parts)
    scores = sites.apply(edits.scores, scores)
    near = [self._softmask(window, context, kv.context) for kv in parts]
    pattern = self._trim(scores) * concatenate(near)
    pattern = sites.apply(edits.pattern, pattern.astype(scores.dtype))
    u = tanh_norm(mixture(pattern, parts))
    gate = jnp.tanh(jax.nn.silu(rows_by_head(reads.whole, self.W_G)))
    scale = jnp.exp(self.s_O).reshape(1, 1, -1, 1).astype(u.dtype)
    return scores, pattern, scale * (u * gate)

  def _windows(self, dtype) -> jax.Array:
    """`[head]`, in tokens, more than 1."""
    return jnp.exp(self.s_w.astype(dtype)) + 1

  def _turn(self, x: jax.Array, context: Context) -> jax.Array:
    """The first plane of queries or keys, turned to their positions.

    The narrower a head's window the faster it turns; from `screening_window`
    on it does not.
    """
    dtype, limit = wide(x.dtype), self.config.screening_window
    window = self._windows(dtype)
    speed = jnp.pi * _hump(window, limit) / window
    positions = context.positions.astype(dtype)[:, :, None]
    angle = positions * speed.reshape(1, 1, -1)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    y = x.astype(dtype)
    first, second = y[..., 0], y[..., 1]
    plane = [first * cos - second * sin, first * sin + second * cos]
    turned = jnp.concatenate([jnp.stack(plane, axis=-1), y[..., 2:]], axis=-1)
    return turned.astype(x.dtype)

  def _trim(self, scores: jax.Array) -> jax.Array:
    """0 for keys that are not similar enough, up to 1 for those alike."""
    dtype = wide(scores.dtype)
    width = jax.nn.sigmoid(self.s_r.astype(dtype)).reshape(1, -1, 1, 1)
    return jax.nn.relu(1 - (1 - scores.astype(dtype)) / width) ** 2

  def _softmask(self, window, query: Context, key: Context) -> jax.Array:
    """`[batch, head, query_pos, key_pos]`: 1 for the query's own position.

    It falls with the distance to 0 at the head's window, and is 0 for keys
    that come later or may not be attended to.
    """
    width = self._windows(wide(self.s_w.dtype)).reshape(1, -1, 1, 1)
    seen = allowed(query, key, causal=self.config.causal, window=window)
    distance = query.positions[:, None, :, None] - key.positions[:, None, None]
    return jnp.where(seen, _hump(distance.astype(width.dtype), width), 0)


def _hump(x: jax.Array, width) -> jax.Array:
  """Half a cosine, from 1 at 0 down to 0 at `width` and beyond, for x >= 0."""
  return jnp.where(x < width, 0.5 * (jnp.cos(jnp.pi * x / width) + 1), 0)


def tanh_norm(x: jax.Array) -> jax.Array:
  """Vectors along the last axis at the tanh of their length.

  At 0 it is the identity, to first order, and so is its gradient.
  """
  y = x.astype(wide(x.dtype))
  square = (y * y).sum(-1, keepdims=True)
  # Where the root has no gradient, the series, exact to rounding.
  small = square < jnp.finfo(y.dtype).eps ** 0.5
  norm = jnp.sqrt(jnp.where(small, 1, square))
  scale = jnp.where(small, 1 - square / 3, jnp.tanh(norm) / norm)
  return (y * scale).astype(x.dtype)
