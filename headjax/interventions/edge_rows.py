"""What does a reader do when one head's write to one of its inputs changes?

An edge leads from the write of head (l, h) to one input, Q, K or V, of a later
head (l', h'). Patching it gives that single input the stream plus the write's
change, through the reader's own norm, and leaves all else as it was: so it is
some other z of the reader, and the rest is a suffix sweep from the reader's
layer on. Edges of one reader layer, whatever their sources, are rows of one
batch.
"""

import functools
from collections.abc import Sequence
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

from headjax.interventions import suffix
from headjax.interventions.divergence import NegativeKL
from headjax.interventions.questions import Batch
from headjax.interventions.record import record, replace_site
from headjax.interventions.rerun import Layers
from headjax.interventions.sweep import at_answer
from headjax.models import weights
from headjax.models.block import Block, layer_statics
from headjax.models.compiling import fast_jit
from headjax.models.decoder import Decoder
from headjax.models.spaces import inputs


@flax.struct.dataclass
class Edges:
  """Some edges into one layer.

  Attributes:
    source: `[n]` int, `source layer * n_heads + source head`.
    head: `[n]` int, the reader.
    letter: `[n]` int, which of the reader's inputs: 0 is Q, 1 K, 2 V and, in
      screening models, 3 the gate.
  """

  source: jax.Array
  head: jax.Array
  letter: jax.Array


@flax.struct.dataclass
class Shared:
  """What all edges of a batch share.

  Attributes:
    base: the clean run, cut to the window.
    deltas: `[source, batch, window, d_model]`, what the stream gains when a
      head's output is that of the reference run.
    metric: the divergence from the clean run.
  """

  base: suffix.Base
  deltas: jax.Array
  metric: NegativeKL


def prepare(
  model: Decoder, params: Any, batch: Batch, window: suffix.Window
) -> Shared:
  """Runs both prompts and cuts out what the edges need; traceable."""
  clean, reference = (
    record(model, params, tokens, key_valid=batch.key_valid)
    for tokens in (batch.clean, batch.reference)
  )
  other = replace_site("z", clean, reference.z, batch.key_valid)
  base = suffix.prepare(model, params, clean, other.z, window)
  deltas = _deltas(model, params, base)
  metric = NegativeKL(at_answer(clean.resid, batch.answer_pos))
  return Shared(base, deltas.reshape(-1, *deltas.shape[2:]), metric)


def _deltas(model: Decoder, params: Any, base: suffix.Base) -> jax.Array:
  """`[layer, head, batch, window, d_model]`: what each change of z writes."""
  block, heads = Block(model.config), jnp.arange(model.config.n_heads)

  def of_layer(params, statics, resid_pre, written, dz):
    def call(method, *args):
      return block.apply({"params": params}, *args, method=method)

    alone = call(Block.write_per_head, statics, dz, heads)
    if not model.config.norms_output:
      return alone

    def gained(written):
      return call(Block.finish, resid_pre, written).attn_out

    # Behind a norm of all heads' sum: what the stream gains by this change.
    change = jax.vmap(lambda own: gained(written + own))(alone)
    moved = (alone != 0).any(-1, keepdims=True)
    return jnp.where(moved, change - gained(written)[None], 0)

  return jax.vmap(of_layer)(
    weights.blocks(params),
    layer_statics(model.config),
    base.resid_pre,
    base.written,
    base.dz,
  )


@flax.struct.dataclass
class Ends:
  """Where patched edges lead.

  Attributes:
    resid: `[n, batch, d_model]`, the final stream at the answer.
    reached: `[n, batch]` bool, whether the reader's input changes at all.
  """

  resid: jax.Array
  reached: jax.Array


def run_edges(
  model: Decoder, params: Any, shared: Shared, layer: jax.Array, edges: Edges
) -> Ends:
  """Patches edges into one layer, each alone; traceable.

  Args:
    model: the `Decoder`; static.
    params: its parameters.
    shared: from `prepare`.
    layer: scalar int, the readers' layer.
    edges: into that layer.
  """
  here, base = Layers(model, params, shared.base), shared.base
  last_layer = model.config.n_layers - 1
  dz = _changes_of_z(here, shared, layer, edges)

  def from_last_layer():
    return here.start(layer, edges.head, dz, base.window.last)

  def from_earlier_layer():
    rows = here.start(layer, edges.head, dz, lambda x: x)
    rows = jax.lax.fori_loop(layer + 1, last_layer, here.whole, rows)
    return here.ending(last_layer, rows)

  rows = jax.lax.cond(layer == last_layer, from_last_layer, from_earlier_layer)
  return Ends(rows[:, :, 0], _reaches(here, shared, layer, edges))


def divergences(
  model: Decoder, params: Any, metric: NegativeKL, ends: Sequence[Ends]
) -> jax.Array:
  """`[call, n, batch]`: KL(clean || patched) of each edge; traceable.

  Where a reader's input stays as it was, it is exactly 0. The unembedding is
  large: the ends of several calls, which share it, are much cheaper together.
  """
  resid = jnp.concatenate([end.resid for end in ends])
  found = -jax.vmap(functools.partial(metric, model, params))(resid)
  found = found.reshape(len(ends), -1, found.shape[-1])
  return jnp.where(jnp.stack([end.reached for end in ends]), found, 0)


def _changes_of_z(here, shared: Shared, layer, edges: Edges) -> jax.Array:
  """`[batch, window, n, d_head]`: by what each reader's output changes."""
  letters = inputs(here.block.config)
  params, statics = here.at(here.stacked, layer)
  resid, prefix = here.at(shared.base.resid_pre, layer), here.prefix(layer)

  def project(stream):
    heads = here.call(
      params, Block.attend, statics, stream, here.context, prefix=prefix
    )
    return heads.q, heads.k, heads.v

  def mix(stream, qkv):
    return here.call(
      params, Block.mix, statics, stream, *qkv, here.context, prefix=prefix
    )

  clean = project(resid)
  clean_z = mix(resid, clean)

  def one(source, head, letter):
    stream = resid + shared.deltas[source]
    qkv = [
      jnp.where(letter == i, new, old)
      for i, (new, old) in enumerate(zip(project(stream), clean, strict=True))
    ]
    # Only a screening model's mixture still reads the stream, for its gates.
    gates = jnp.where(letter == letters.find("G"), stream, resid)
    return (mix(gates, qkv) - clean_z)[:, :, head]

  rows = jax.vmap(one)(edges.source, edges.head, edges.letter)
  return jnp.moveaxis(rows, 0, 2)


def _reaches(here, shared: Shared, layer, edges: Edges) -> jax.Array:
  """`[n, batch]`: whether a write's change reaches the reader's input."""
  config = here.block.config
  _, statics = here.at(here.stacked, layer)
  letters = jnp.array([x in config.read.blocks for x in inputs(config)])

  def one(source, head, letter):
    delta = shared.deltas[source]
    size = jnp.linalg.norm(delta, axis=-1)
    read = size
    if config.read.blocks:
      blocks = config.read.apply(delta, statics.read, config.d_head)
      own = jnp.linalg.norm(blocks[:, :, head], axis=-1)
      read = jnp.where(letters[letter], own, size)
    # A rotated block that the write misses is not 0 but rounding.
    floor = 32 * jnp.finfo(size.dtype).eps * size
    return ((read > floor) & here.seen).any(1)

  return jax.vmap(one)(edges.source, edges.head, edges.letter)


prepared = fast_jit(prepare, static_argnames=("model",))
compiled = fast_jit(run_edges, static_argnames=("model",))
measured = fast_jit(divergences, static_argnames=("model",))
