"""Softmax attention over stretches of keys, with every intermediate readable.

Einsum letters, the same in the whole package: `l` layer, `h` head, `b` batch,
`q` query_pos, `k` key_pos, `p` pos, `d` d_model, `e` d_head, `f` d_mlp,
`v` vocab, `n` sweep item.

Keys may come in two parts: a `prefix` of cached ones, whose positions end
before the rows being computed begin, and the rows' own. That one function
serves whole sequences, the windows of a suffix sweep, and decoding.
"""

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from headjax.models import sites
from headjax.models.config import ModelConfig
from headjax.models.layers import bend, rotate, wide
from headjax.models.rotary import frequencies
from headjax.models.sites import Edits
from headjax.outline import of_fields, table_of_fields


@flax.struct.dataclass
class Context:
  """Where the rows of a forward stand in their sequences.

  Attributes:
    positions: `[batch, pos]` int, the rows' positions in tokens.
    key_valid: `[batch, pos]` bool, whether a row may be attended to.
    plain: whether it is known that these are whole sequences, every position
      0, 1, ... and every key valid; static.
  """

  positions: jax.Array
  key_valid: jax.Array
  plain: bool = flax.struct.field(pytree_node=False, default=False)

  __repr__ = of_fields
  _repr_html_ = table_of_fields


@flax.struct.dataclass
class KV:
  """Cached keys and values, per query head.

  Attributes:
    k: `[batch, key_pos, head, d_key]`, turned to their positions.
    v: `[batch, key_pos, head, d_head]`, as they enter the mixture.
    context: where the cached rows stand, `[batch, key_pos]`.
  """

  k: jax.Array
  v: jax.Array
  context: Context


def allowed(
  query: Context, key: Context, *, causal: bool, window: jax.Array
) -> jax.Array:
  """Which keys a query may see: `[batch, 1, query_pos, key_pos]` bool."""
  distance = query.positions[:, :, None] - key.positions[:, None, :]
  mask = key.key_valid[:, None, :] & ((window == 0) | (distance < window))
  if causal:
    mask &= distance >= 0
  return mask[:, None]


def turn(config: ModelConfig, x: jax.Array, context: Context) -> jax.Array:
  """Queries or keys turned to their positions, in rotary models."""
  if config.positions != "rotary":
    return x
  planes = frequencies(
    config.rotary_width, config.rotary_theta, config.rotary_scaling
  )
  return rotate(x, context.positions, planes)


def attend(
  config: ModelConfig,
  window: jax.Array,
  q: jax.Array,
  context: Context,
  parts: tuple[KV, ...],
  edits: Edits = Edits(),
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Softmax attention over one or several stretches of keys.

  The stretches stay apart, so that a `vmap` over queries shares the cached
  ones instead of copying them.

  Args:
    config: of the model.
    window: scalar int, how many tokens a query sees; 0 means all.
    q: `[batch, query_pos, head, d_head]`, before rotary.
    context: of the queries.
    parts: keys, after rotary, and values.
    edits: of `scores` and `pattern`; no edit of the scores can unmask a key.

  Returns:
    `scores` and `pattern`, `[batch, head, query_pos, key_pos]` with the keys
    of all parts in order, and `z`, `[batch, query_pos, head, d_head]`.
  """
  q = turn(config, q, context) * config.score_scale
  mask = concatenate(
    [
      allowed(context, kv.context, causal=config.causal, window=window)
      for kv in parts
    ]
  )
  scores = bend(products(q, parts), config.score_cap)
  scores = sites.apply(edits.scores, scores)
  pattern = sites.apply(edits.pattern, softmax(scores, mask))
  return scores, pattern, mixture(pattern, parts)


def products(q: jax.Array, parts: tuple[KV, ...]) -> jax.Array:
  """`[batch, head, query_pos, key_pos]`: queries times keys of all parts."""
  return concatenate([jnp.einsum("bqhe,bkhe->bhqk", q, kv.k) for kv in parts])


def mixture(pattern: jax.Array, parts: tuple[KV, ...]) -> jax.Array:
  """`[batch, query_pos, head, d_head]`: the values, as the pattern weighs."""
  ends = np.cumsum([kv.k.shape[1] for kv in parts])[:-1].tolist()
  return sum(
    jnp.einsum("bhqk,bkhe->bqhe", share, kv.v)
    for share, kv in zip(jnp.split(pattern, ends, axis=-1), parts, strict=True)
  )


def concatenate(arrays: list[jax.Array]) -> jax.Array:
  """The keys of all parts on one axis, the last."""
  return arrays[0] if len(arrays) == 1 else jnp.concatenate(arrays, axis=-1)


def softmax(scores: jax.Array, mask: jax.Array) -> jax.Array:
  """Softmax over allowed keys, in at least float32.

  Masked scores become the type's lowest value, never a constant that a large
  score could undercut, and masked keys get exactly 0 even if all scores are
  that low.
  """
  dtype = wide(scores.dtype)
  lowest = jnp.finfo(dtype).min
  masked = jnp.where(mask, scores.astype(dtype), lowest)
  pattern = jnp.where(mask, jax.nn.softmax(masked, axis=-1), 0)
  return pattern.astype(scores.dtype)
