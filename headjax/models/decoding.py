"""How is one more token computed without the earlier ones again?

Each layer's keys and values of all tokens so far are kept in a `Cache`.
`prefill` makes it from the prompts, in one pass; `step` computes one token a
row and adds to it. Keys are kept turned to their positions. Query heads that
share a K/V head share its cache, unless an edit sets their keys or values
apart.
"""

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

from headjax.models.block import Block
from headjax.models.decoder import Decoder
from headjax.models.layerwise import scan_layers
from headjax.models.prompts import padded_context
from headjax.models.sites import Activations, Edits
from headjax.models.softmax import KV, Context


@flax.struct.dataclass
class Cache:
  """The keys and values of all tokens so far.

  A slot holds one token a row. Prompts fill the first slots, each padded to
  the common width; new tokens follow, so a row's slots need not be its
  positions.

  Attributes:
    k: `[layer, batch, slot, kv_head, d_key]`, turned to their positions.
    v: `[layer, batch, slot, kv_head, d_head]`, as they enter the mixture.
    context: `[batch, slot]`, where the tokens stand; padding and slots that
      are still empty are not valid.
    n_tokens: `[batch]` tokens of each row, the position of its next one.
    n_slots: scalar, slots in use.
  """

  k: jax.Array
  v: jax.Array
  context: Context
  n_tokens: jax.Array
  n_slots: jax.Array


def prefill(
  model: Decoder,
  params: Any,
  tokens: jax.Array,
  lengths: jax.Array,
  room: int,
  edits: Edits = Edits(),
  *,
  shared: bool = True,
) -> tuple[jax.Array, Cache]:
  """Runs the prompts; traceable.

  Args:
    model: the `Decoder`; static.
    params: its parameters.
    tokens: `[batch, pos]` ids, padded on the right.
    lengths: `[batch]`, in tokens.
    room: how many tokens can be added later; static.
    edits: what to change.
    shared: whether the query heads of a group have the same keys and values,
      now and later; static.

  Returns:
    The final stream of each row's last token, `[batch, d_model]`, and the
    cache.
  """
  context = padded_context(tokens, lengths)
  resid, (k, v) = scan_layers(
    model, params, tokens, context, _keys(model, context, shared), edits
  )
  last = (lengths - 1)[:, None, None]
  empty = Context(
    jnp.pad(context.positions, ((0, 0), (0, room))),
    jnp.pad(context.key_valid, ((0, 0), (0, room))),
  )
  slots = ((0, 0), (0, 0), (0, room), (0, 0), (0, 0))
  cache = Cache(
    jnp.pad(k, slots),
    jnp.pad(v, slots),
    empty,
    lengths.astype(jnp.int32),
    jnp.int32(tokens.shape[1]),
  )
  return jnp.take_along_axis(resid, last, axis=1)[:, 0], cache


def step(
  model: Decoder,
  params: Any,
  tokens: jax.Array,
  cache: Cache,
  edits: Edits = Edits(),
) -> tuple[jax.Array, Cache]:
  """Runs one more token of every row; traceable.

  Args:
    model: the `Decoder`; static.
    params: its parameters.
    tokens: `[batch]` ids.
    cache: with room for one more.
    edits: what to change; their leaves broadcast over positions.

  Returns:
    The final stream of the token, `[batch, d_model]`, and the cache with it.
  """
  group = model.config.n_heads // cache.k.shape[3]
  positions = cache.n_tokens[:, None]
  context = Context(positions, jnp.ones_like(positions, bool))

  def prefix(k, v):
    k, v = (jnp.repeat(x, group, axis=2) for x in (k, v))
    return KV(k, v, cache.context)

  resid, (k, v) = scan_layers(
    model, params, tokens[:, None], context,
    _keys(model, context, shared=group > 1), edits,
    cached=(cache.k, cache.v), prefix=prefix,
  )  # fmt: skip

  def add(whole, one, axis):
    return jax.lax.dynamic_update_slice_in_dim(whole, one, cache.n_slots, axis)

  seen = jax.tree.map(lambda a, b: add(a, b, 1), cache.context, context)
  cache = Cache(
    add(cache.k, k, 2),
    add(cache.v, v, 2),
    seen,
    cache.n_tokens + 1,
    cache.n_slots + 1,
  )
  return resid[:, 0], cache


def _keys(model: Decoder, context: Context, shared: bool):
  """What the cache keeps of a layer: its keys and values, once a group."""
  block = Block(model.config)
  every = model.config.group_size if shared else 1

  def see(params: Any, acts: Activations) -> tuple[jax.Array, jax.Array]:
    placed = block.apply(
      {"params": params}, acts.k, acts.v, context, method=Block.place
    )
    return placed.k[:, :, ::every], placed.v[:, :, ::every]

  return see
