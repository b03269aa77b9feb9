"""How much does each head matter, at the least cost? The suffix sweep.

Whatever is edited inside a layer's heads, a head's output becomes some other
`z`. Before that layer nothing changes, and in a causal model nothing changes
at positions before the first edited one. So for a head of layer l only layers
l, l+1, ... and the window of positions from the first edit to the answer are
computed; earlier positions are read from the clean run's keys and values. All
heads of a layer are rows of one batch, the layer is an argument, and one
compiled program serves every layer, head, prompt and window start.
"""

import functools
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from headjax.interventions.record import Run, cached_keys
from headjax.models import weights
from headjax.models.block import Block, layer_statics
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder
from headjax.models.softmax import KV, Context


@flax.struct.dataclass
class Window:
  """The stretch of positions that a sweep computes again, per example.

  Attributes:
    start: `[batch]` int, the first position that an edit can change.
    answer: `[batch]` int, the position that the metric reads.
    index: `[batch, window]` int, the window's positions in the padded batch.
    width: positions in the window; static.
    prefix: whether positions before `start` are read from the cache; static.
  """

  start: jax.Array
  answer: jax.Array
  index: jax.Array
  width: int = flax.struct.field(pytree_node=False)
  prefix: bool = flax.struct.field(pytree_node=False)

  def take(self, x: jax.Array) -> jax.Array:
    """The window of `[batch, pos, ...]`: `[batch, window, ...]`."""
    index = self.index.reshape(*self.index.shape, *(1,) * (x.ndim - 2))
    return jnp.take_along_axis(x, index, axis=1)

  def last(self, x: jax.Array) -> jax.Array:
    """The answer's row of a window: `[batch, 1, ...]`."""
    index = (self.answer - self.start)[:, None]
    index = index.reshape(*index.shape, *(1,) * (x.ndim - 2))
    return jnp.take_along_axis(x, index, axis=1)


def make_window(
  config: ModelConfig,
  start: np.ndarray,
  answer: np.ndarray,
  n_pos: int,
  width: int | None = None,
) -> Window:
  """The smallest window that holds every example's edits and answer.

  Without causality, an edit anywhere changes every position, so the window
  is the whole sequence.

  Args:
    config: says whether attention is causal.
    start: `[example]` first position that the edit can change.
    answer: `[example]` position of the metric, not before `start`.
    n_pos: positions in the padded batch.
    width: at least the default; a common one lets chunks share a program.
  """
  width = width or int((answer - start).max()) + 1
  if not config.causal or width == n_pos:
    start, width = np.zeros_like(start), n_pos
  index = np.minimum(start[:, None] + np.arange(width), n_pos - 1)
  return Window(
    jnp.asarray(start, jnp.int32),
    jnp.asarray(answer, jnp.int32),
    jnp.asarray(index, jnp.int32),
    width,
    width < n_pos,
  )


@flax.struct.dataclass
class Base:
  """What all source layers of a sweep share.

  Attributes:
    resid_pre, written: `[layer, batch, window, d_model]`, clean: the stream,
      and the sum of the heads' writes.
    dz: `[layer, batch, window, head, d_head]`, edited minus clean output.
    k: `[layer, batch, pos, head, d_key]`, clean, turned to their positions.
    v: `[layer, batch, pos, head, d_head]`, clean, as they enter the mixture.
    context: `[batch, pos]`, where the cached keys stand.
    window: the positions to compute.
  """

  resid_pre: jax.Array
  written: jax.Array
  dz: jax.Array
  k: jax.Array
  v: jax.Array
  context: Context
  window: Window


def prepare(
  model: Decoder, params: Any, clean: Run, z_alt: jax.Array, window: Window
) -> Base:
  """Cuts the window out of the clean run; traceable.

  Args:
    model: the `Decoder`.
    params: its parameters.
    clean: the run that is edited.
    z_alt: `[layer, batch, pos, head, d_head]`, from `alternative_z`.
    window: from `make_window`.
  """
  take = jax.vmap(window.take)
  cached = cached_keys(model, params, clean)
  dz = take(z_alt - clean.z)
  return Base(
      take(clean.resid_pre), take(clean.written), dz, cached.k, cached.v,
    cached.context,
      window,
  )  # fmt: skip


def sweep_layer(
  model: Decoder,
  params: Any,
  base: Base,
  layer: jax.Array,
  heads: jax.Array,
) -> tuple[jax.Array, jax.Array]:
  """Edits some heads of one layer, each alone; traceable.

  Args:
    model: the `Decoder`; static.
    params: its parameters.
    base: from `prepare`.
    layer: scalar int, the source layer.
    heads: `[n]` int, the source heads.

  Returns:
    The final stream at the answer, `[n, batch, d_model]`, and whether the
    edit changed the head's output at all, `[n, batch]` bool.
  """
  last_layer = model.config.n_layers - 1
  here = _Layers(model, params, base)
  dz = here.at(base.dz, layer)[:, :, heads]
  changed = ((dz != 0) & here.seen[:, :, None, None]).any(axis=(1, 3)).T

  def from_last_layer():
    return here.start(layer, heads, dz, base.window.last)

  def from_earlier_layer():
    rows = here.start(layer, heads, dz, lambda x: x)
    rows = jax.lax.fori_loop(layer + 1, last_layer, here.whole, rows)
    return here.ending(last_layer, rows)

  rows = jax.lax.cond(layer == last_layer, from_last_layer, from_earlier_layer)
  return rows[:, :, 0], changed


class _Layers:
  """The block's halves at a traced layer, over rows `[n, batch, pos, d]`."""

  def __init__(self, model: Decoder, params: Any, base: Base):
    self.block = Block(model.config)
    self.stacked = (weights.blocks(params), layer_statics(model.config))
    self.base = base
    window, n_pos = base.window, base.k.shape[2]
    line = window.start[:, None] + jnp.arange(window.width)[None]
    # Past the end of the batch, the window repeats its last position.
    valid = (line < n_pos) & window.take(base.context.key_valid)
    self.context = Context(window.take(base.context.positions), valid)
    # What a causal answer cannot see cannot change it.
    causal = model.config.causal
    self.seen = valid & (line <= window.answer[:, None]) if causal else valid

  @staticmethod
  def at(tree, layer):
    return jax.tree.map(
      lambda x: jax.lax.dynamic_index_in_dim(x, layer, keepdims=False), tree
    )

  def call(self, params, method, *args, **kwargs):
    return self.block.apply({"params": params}, *args, method=method, **kwargs)

  def start(self, layer, heads, dz, cut):
    """The source layer: clean writes plus one head's change, then the MLP."""
    params, statics = self.at(self.stacked, layer)
    resid_pre = cut(self.at(self.base.resid_pre, layer))
    written = cut(self.at(self.base.written, layer))
    delta = self.call(params, Block.write_per_head, statics, cut(dz), heads)
    finish = functools.partial(self.call, params, Block.finish, resid_pre)
    return jax.vmap(lambda d: finish(written + d).resid_post)(delta)

  def prefix(self, layer) -> KV | None:
    """The clean keys before the window."""
    base, context = self.base, self.base.context
    if not base.window.prefix:
      return None
    line = jnp.arange(context.key_valid.shape[1])[None]
    before = context.key_valid & (line < base.window.start[:, None])
    cached = Context(context.positions, before)
    return KV(self.at(base.k, layer), self.at(base.v, layer), cached)

  def whole(self, layer, rows):
    """A later layer, at every position of the window."""
    params, statics = self.at(self.stacked, layer)
    prefix = self.prefix(layer)

    def one(resid_pre):
      heads = self.call(
        params, Block.attend, statics, resid_pre, self.context, prefix=prefix
      )
      written = self.call(params, Block.write, statics, heads.z)
      return self.call(params, Block.finish, resid_pre, written).resid_post

    return jax.vmap(one)(rows)

  def ending(self, layer, rows):
    """The last layer: keys from the whole window, the answer's row asks."""
    params, statics = self.at(self.stacked, layer)
    prefix, last = self.prefix(layer), self.base.window.last
    context = Context(
      last(self.context.positions), last(self.context.key_valid)
    )

    def one(resid_pre):
      answer = last(resid_pre)
      heads = self.call(
          params, Block.attend, statics, resid_pre, self.context,
          prefix=prefix, asking=(answer, context),
      )  # fmt: skip
      written = self.call(params, Block.write, statics, heads.z)
      return self.call(params, Block.finish, answer, written).resid_post

    return jax.vmap(one)(rows)
