"""One block, as two pure halves that every kind of forward shares.

`attend` turns the stream into heads, `finish` adds what the heads wrote and
runs the MLP. The scan over layers, both sweeps and decoding are made of these
two; a sweep enters between them with another attention output.
"""

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp

from headjax.models import attention, sites
from headjax.models.attention import KV, Attention, Context, Heads
from headjax.models.config import ModelConfig
from headjax.models.layers import Norm
from headjax.models.mlp import MLP
from headjax.models.sites import Activations, Edits


@flax.struct.dataclass
class LayerStatics:
  """What differs by layer but is no parameter; leading `layer` axis.

  Attributes:
    window: `[layer]` int, tokens that a query sees; 0 means all.
  """

  window: jax.Array


def layer_statics(config: ModelConfig) -> LayerStatics:
  """The statics of all layers, to be scanned beside the parameters."""
  return LayerStatics(window=jnp.array(config.windows, jnp.int32))


@flax.struct.dataclass
class Finished:
  """What the second half of a block computed."""

  resid_mid: jax.Array
  mlp_out: jax.Array
  resid_post: jax.Array


class Block(nn.Module):
  """A pre-norm transformer block."""

  config: ModelConfig

  def setup(self):
    self.attn_norm = Norm(self.config)
    self.attention = Attention(self.config)
    if self.config.mlp != "none":
      self.mlp_norm = Norm(self.config)
      self.mlp = MLP(self.config)

  def __call__(
    self,
    resid_pre: jax.Array,
    statics: LayerStatics,
    context: Context,
    edits: Edits,
  ) -> tuple[jax.Array, Activations]:
    """The whole block, as the scan over layers wants it."""
    resid_pre = sites.apply(edits.resid_pre, resid_pre)
    heads = self.attend(statics, resid_pre, context, edits=edits)
    attn_out = sites.apply(edits.attn_out, self.write(heads.z))
    finished = self.finish(resid_pre, attn_out, edits)
    activations = Activations(
        resid_pre=resid_pre, q=heads.q, k=heads.k, v=heads.v,
        scores=heads.scores, pattern=heads.pattern, z=heads.z,
        attn_out=attn_out, resid_mid=finished.resid_mid,
        mlp_out=finished.mlp_out, resid_post=finished.resid_post,
    )  # fmt: skip
    return finished.resid_post, activations

  def attend(
    self,
    statics: LayerStatics,
    resid_pre: jax.Array,
    context: Context,
    *,
    prefix: KV | None = None,
    asking: tuple[jax.Array, Context] | None = None,
    edits: Edits = Edits(),
  ) -> Heads:
    """The first half: from the stream to the heads' outputs.

    Args:
      statics: of this layer.
      resid_pre: `[batch, pos, d_model]`.
      context: where the rows stand.
      prefix: cached keys and values of earlier positions, if any.
      asking: the stream `[batch, query_pos, d_model]` and context of the rows
        that need an output, when it is not all of them.
      edits: of `q`, `k`, `v`, `scores`, `pattern` and `z`.

    Returns:
      The heads; with a prefix, `scores` and `pattern` have its keys first.
    """
    config, layer = self.config, self.attention
    x = self.attn_norm(resid_pre)
    k, v = layer.kv(x)
    k, v = sites.apply(edits.k, k), sites.apply(edits.v, v)
    own = KV(attention.turn(config, k, context), v, context)
    if asking is not None:
      x, context = self.attn_norm(asking[0]), asking[1]
    q = sites.apply(edits.q, layer.q(x))
    parts = (own,) if prefix is None else (prefix, own)
    scores, pattern, z = attention.attend(
      config, statics.window, q, context, parts, edits
    )
    return Heads(q, k, v, scores, pattern, sites.apply(edits.z, z))

  def write(self, z: jax.Array) -> jax.Array:
    """`[batch, pos, d_model]`: what all heads together add."""
    return self.attention.write(z)

  def write_per_head(self, z: jax.Array, heads: jax.Array) -> jax.Array:
    """`[n, batch, pos, d_model]`: what each of some heads adds."""
    return self.attention.write_per_head(z, heads)

  def finish(
    self,
    resid_pre: jax.Array,
    attn_out: jax.Array,
    edits: Edits = Edits(),
  ) -> Finished:
    """The second half: add the heads' writes, then the MLP's."""
    resid_mid = sites.apply(edits.resid_mid, resid_pre + attn_out)
    if self.config.mlp == "none":
      mlp_out, resid_post = jnp.zeros_like(resid_mid), resid_mid
    else:
      mlp_out = self.mlp(self.mlp_norm(resid_mid))
      mlp_out = sites.apply(edits.mlp_out, mlp_out)
      resid_post = resid_mid + mlp_out
    return Finished(
      resid_mid, mlp_out, sites.apply(edits.resid_post, resid_post)
    )
