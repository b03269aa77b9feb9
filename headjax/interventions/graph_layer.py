"""What do the parts of one layer make of streams of their own?

Every input of every head, and the MLP, reads the stream that the edges into it
make: that of a run without any edge, plus what each sender gives beyond it.
"""

import jax
import jax.numpy as jnp

from headjax.interventions import nodes
from headjax.models.block import Block
from headjax.models.config import ModelConfig
from headjax.models.softmax import Context
from headjax.models.spaces import inputs


class Step:
  """One layer: its heads and its MLP, each on the stream of its own edges.

  The carry is the stream of a run without any edge, `base`, and what each
  sender gives beyond the corrupted run, `ahead`.
  """

  def __init__(self, config: ModelConfig, context: Context, n_senders: int):
    self.config, self.context = config, context
    self.block, self.n_senders = Block(config), n_senders

  def __call__(self, carry, layer, start):
    """The carry after a layer; before layer `start`, what is sent is known."""
    params, statics, index, mask, corrupted, added = layer
    base, ahead = carry
    n_heads = self.config.n_heads
    silent = jnp.zeros((1, 1, n_heads, self.config.d_head), base.dtype)
    bias = self.call(params, Block.write, statics, silent)
    middle = base + bias + corrupted[:n_heads].sum(0)
    after = middle + corrupted[n_heads:].sum(0)

    def compute(ahead):
      read = self.reading(mask[: -1 if self.has_mlp else None], added)
      own = self.heads(params, statics, base[None] + read(ahead))
      ahead = self.put(ahead, own - corrupted[:n_heads], index, 0)
      if not self.has_mlp:
        return ahead
      stream = base if self.config.parallel else middle
      last = None if added is None else added[-1:]
      read = self.reading(mask[-1:], last)
      mlp = self.mlp(params, stream + read(ahead)[0])
      return self.put(ahead, (mlp - corrupted[-1])[None], index, n_heads)

    if start is None:
      return after, compute(ahead)
    ahead = jax.lax.cond(index < start, lambda x: x, compute, ahead)
    return after, ahead

  @property
  def has_mlp(self) -> bool:
    """Whether a layer has senders beside its heads."""
    return self.n_senders > self.config.n_heads

  def call(self, params, method, *args):
    """A method of the block."""
    return self.block.apply({"params": params}, *args, method=method)

  @staticmethod
  def reading(mask, added):
    """What some receivers read beyond the base: `[receiver, ...]`."""

    def read(ahead):
      found = jnp.einsum("rs,sbpd->rbpd", mask, ahead)
      return found if added is None else found + added[: len(mask)]

    return read

  def put(self, ahead, own, layer, place):
    """Enters what some senders of a layer give."""
    where = nodes.n_inputs(self.config) + layer * self.n_senders + place
    return jax.lax.dynamic_update_slice_in_dim(ahead, own, where, axis=0)

  def mlp(self, params, stream):
    """`[batch, pos, d_model]`: what the MLP makes of its own stream."""
    return self.call(params, Block.finish, stream, 0 * stream).mlp_out

  def heads(self, params, statics, streams):
    """`[head, batch, pos, d_model]`: what each head writes.

    Args:
      params: of the layer.
      statics: of the layer.
      streams: `[head * input, batch, pos, d_model]`.
    """
    config = self.config
    letters = inputs(config)
    streams = streams.reshape(config.n_heads, len(letters), *streams.shape[1:])
    apart = dict(zip(letters, jnp.moveaxis(streams, 1, 0), strict=True))
    qkv = [self.project(params, statics, apart[x], x) for x in "QKV"]

    def mix(stream):
      return self.call(params, Block.mix, statics, stream, *qkv, self.context)

    if "G" in letters:
      z = _own(jax.vmap(mix)(apart["G"]))
    else:  # the mixture reads no stream besides
      z = mix(apart["Q"][0])
    heads = jnp.arange(config.n_heads)
    return self.call(params, Block.write_per_head, statics, z, heads)

  def project(self, params, statics, streams, letter):
    """`[batch, pos, head, width]`: each head's input from its own stream."""
    config = self.config
    mixes = config.qk_norm and letter != "V"
    if mixes or letter in config.read.blocks or "G" in inputs(config):
      every = jax.vmap(
        lambda x: self.call(params, Block.project, statics, x, letter)
      )(streams)
      return _own(every)
    return self.call(params, Block.project_apart, statics, streams, letter)


def _own(every: jax.Array) -> jax.Array:
  """Of `[stream, batch, pos, head, ...]`, each head's of its own stream."""
  return jnp.moveaxis(jnp.diagonal(every, axis1=0, axis2=3), -1, 2)
