"""What if a layer gave another stream at the last token? The rest of one row.

In a causal model the last token is seen by nobody else: with another stream
there, all other rows stay as they were. So the row goes on by itself through
the later layers and attends to the clean keys and values before it. Many such
rows are one batch, at a small part of the cost of whole forwards.
"""

import functools
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

from headjax.checks import check
from headjax.interventions.record import cached_keys, record
from headjax.models import weights
from headjax.models.block import Block, layer_statics
from headjax.models.compiling import fast_jit
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder
from headjax.models.softmax import KV, Context


@flax.struct.dataclass
class Before:
  """What rows at the last token need of the clean run.

  Attributes:
    streams: `[layer, batch, d_model]`, the output of every layer there.
    k, v: `[layer, batch, pos, head, ...]`, ready to be attended to.
    cached: `[batch, pos]`, where they stand, valid before the last token.
    context: `[batch, 1]`, where the last token stands.
  """

  streams: jax.Array
  k: jax.Array
  v: jax.Array
  cached: Context
  context: Context


def check_causal(config: ModelConfig) -> None:
  """Refuses models in which the last token is seen by others."""
  check(
    config.causal,
    "model",
    "attention to later tokens",
    "a causal model",
    "edit whole forwards instead: `headjax.run` with edits",
  )


@functools.partial(fast_jit, static_argnames=("model",))
def prepare(
  model: Decoder, params: Any, tokens: jax.Array, lengths: jax.Array
) -> Before:
  """Runs the prompts; traceable.

  Args:
    model: the `Decoder`; static, causal.
    params: its parameters.
    tokens: `[batch, pos]` int, padded on the right.
    lengths: `[batch]` int, in tokens.
  """
  line = jnp.arange(tokens.shape[1])[None]
  clean = record(model, params, tokens, key_valid=line < lengths[:, None])
  kv = cached_keys(model, params, clean)
  last = (lengths - 1)[:, None]
  # What leaves a layer enters the next one.
  outputs = jnp.concatenate([clean.resid_pre[1:], clean.resid[None]])
  streams = jnp.take_along_axis(outputs, last[None, :, :, None], axis=2)
  return Before(
    streams[:, :, 0],
    kv.k,
    kv.v,
    Context(kv.context.positions, line < last),
    Context(last, jnp.ones(last.shape, bool)),
  )


@functools.partial(fast_jit, static_argnames=("model",))
def finish(
  model: Decoder, params: Any, before: Before, layer: jax.Array, rows: jax.Array
) -> jax.Array:
  """The final stream if a layer had given other rows; traceable.

  Args:
    model: the `Decoder`; static, causal.
    params: its parameters.
    before: from `prepare`.
    layer: scalar int, whose output the rows are.
    rows: `[n, batch, d_model]`, each in place of the last token's stream.

  Returns:
    `[n, batch, d_model]`.
  """
  stacked = weights.blocks(params), layer_statics(model.config)

  def later(index, rows):
    here, statics = jax.tree.map(lambda x: x[index], stacked)
    call = functools.partial(Block(model.config).apply, {"params": here})
    kv = KV(before.k[index], before.v[index], before.cached)

    def one(resid_pre):
      heads = call(
        statics, resid_pre, before.context, prefix=kv, method=Block.attend
      )
      written = call(statics, heads.z, method=Block.write)
      return call(resid_pre, written, method=Block.finish).resid_post

    return jax.vmap(one)(rows)

  rows = rows[:, :, None].astype(before.streams.dtype)
  return jax.lax.fori_loop(layer + 1, model.config.n_layers, later, rows)[
    :, :, 0
  ]
