"""How does one layer run again, with some rows changed?

The rows `[n, batch, window, d_model]` are one stream per edited head; the layer
is traced, so that all layers share one program. Parts of the model can be held
at what they gave in the clean run, for each row others.
"""

import functools
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

from headjax.interventions.nodes import check_sum
from headjax.interventions.window import Base
from headjax.models import weights
from headjax.models.block import Block, layer_statics
from headjax.models.decoder import Decoder
from headjax.models.sites import Edit, Edits
from headjax.models.softmax import KV, Context
from headjax.outline import of_fields, table_of_fields


@flax.struct.dataclass
class Hold:
  """What is kept at its clean value while a head is patched.

  Of a whole sweep the arrays have the axes given here; of some rows of it, one
  axis in place of the first two.

  Attributes:
    heads: `[source_layer, source_head, layer, head]` bool; only layers after
      the source are reached.
    mlps: `[source_layer, source_head, layer]` bool; from the source's own
      layer on.
  """

  heads: jax.Array
  mlps: jax.Array

  __repr__ = of_fields
  _repr_html_ = table_of_fields


class Layers:
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
    """One layer of a tree of arrays `[layer, ...]`."""
    return jax.tree.map(
      lambda x: jax.lax.dynamic_index_in_dim(x, layer, keepdims=False), tree
    )

  def call(self, params, method, *args, **kwargs):
    """A method of the block."""
    return self.block.apply({"params": params}, *args, method=method, **kwargs)

  def start(self, layer, heads, dz, cut, hold=None):
    """The source layer: clean writes plus one head's change, then the MLP."""
    params, _ = self.at(self.stacked, layer)
    resid_pre, written = self._entering(layer, cut)
    finish = functools.partial(self.call, params, Block.finish, resid_pre)

    def one(delta, hold):
      return finish(written + delta, self._held(layer, hold, cut)).resid_post

    return jax.vmap(one)(self._written(layer, heads, cut(dz)), hold)

  def arrived(self, layer, heads, dz):
    """What each edit by itself adds to the stream, at the source layer."""
    check_sum(self.block.config)
    delta = self._written(layer, heads, dz)
    if not self.block.config.norms_output:
      return delta
    params, _ = self.at(self.stacked, layer)
    resid_pre, written = self._entering(layer, lambda x: x)

    def gained(delta):
      return self.call(
        params, Block.finish, resid_pre, written + delta
      ).attn_out

    # Behind the norm of all heads' sum, what a head writes is not additive.
    return jax.vmap(lambda delta: gained(delta) - gained(0 * delta))(delta)

  def _entering(self, layer, cut):
    """The clean stream of a layer, and what its heads wrote."""
    base = self.base
    return cut(self.at(base.resid_pre, layer)), cut(
      self.at(base.written, layer)
    )

  def _written(self, layer, heads, dz):
    """`[n, batch, pos, d_model]`: what the changes of some heads write."""
    params, statics = self.at(self.stacked, layer)
    return self.call(params, Block.write_per_head, statics, dz, heads)

  def _held(self, layer, hold: Hold | None, cut) -> Edits:
    """One row's edits of a layer towards the clean run."""
    if hold is None:
      return Edits()
    z, mlp_out = (
      cut(self.at(x, layer)) for x in (self.base.z, self.base.mlp_out)
    )
    heads, mlp = self.at(hold.heads, layer), self.at(hold.mlps, layer)
    return Edits(
      z=(Edit(heads[None, None, :, None], z),),
      mlp_out=(Edit(mlp[None, None, None], mlp_out),),
    )

  def prefix(self, layer) -> KV | None:
    """The clean keys before the window."""
    base, context = self.base, self.base.context
    if not base.window.prefix:
      return None
    line = jnp.arange(context.key_valid.shape[1])[None]
    before = context.key_valid & (line < base.window.start[:, None])
    cached = Context(context.positions, before)
    return KV(self.at(base.k, layer), self.at(base.v, layer), cached)

  def whole(self, layer, rows, hold=None):
    """A later layer, at every position of the window."""
    params, statics = self.at(self.stacked, layer)
    prefix = self.prefix(layer)

    def one(resid_pre, hold):
      edits = self._held(layer, hold, lambda x: x)
      heads = self.call(
          params, Block.attend, statics, resid_pre, self.context,
          prefix=prefix, edits=edits,
      )  # fmt: skip
      written = self.call(params, Block.write, statics, heads.z)
      return self.call(
        params, Block.finish, resid_pre, written, edits
      ).resid_post

    return jax.vmap(one)(rows, hold)

  def ending(self, layer, rows, hold=None):
    """The last layer: keys from the whole window, the answer's row asks."""
    params, statics = self.at(self.stacked, layer)
    last = self.base.window.last

    def one(resid_pre, hold):
      edits = self._held(layer, hold, last)
      answer = last(resid_pre)
      heads = self.asked(layer, answer, resid_pre, edits)
      written = self.call(params, Block.write, statics, heads.z)
      return self.call(params, Block.finish, answer, written, edits).resid_post

    return jax.vmap(one)(rows, hold)

  def asked(self, layer, answer, resid_pre, edits: Edits = Edits()):
    """The heads where one stream's answer row asks another stream's keys.

    Args:
      layer: which.
      answer: `[batch, 1, d_model]`.
      resid_pre: `[batch, window, d_model]`.
      edits: of `z`.
    """
    params, statics = self.at(self.stacked, layer)
    context = Context(
      *map(
        self.base.window.last, (self.context.positions, self.context.key_valid)
      )
    )
    return self.call(
        params, Block.attend, statics, resid_pre, self.context,
        prefix=self.prefix(layer), asking=(answer, context), edits=edits,
    )  # fmt: skip

  def inputs(self, layer, resid_pre) -> dict[str, jax.Array]:
    """What each head's maps make of a stream, `[batch, window, head, width]`.

    Args:
      layer: which.
      resid_pre: `[batch, window, d_model]`.

    Returns:
      One array for each letter of what heads read.
    """
    params, statics = self.at(self.stacked, layer)
    return self.call(params, Block.inputs, statics, resid_pre)
