"""One block, as two pure halves that every kind of forward shares.

`attend` turns the stream into heads, `finish` adds what the heads wrote and
runs the MLP. The scan over layers, both sweeps and decoding are made of these
two; a sweep enters between them with another attention output.
"""

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding

from headjax.geometry.designs import Rotation
from headjax.models import sites
from headjax.models.attention import Attention
from headjax.models.config import ModelConfig
from headjax.models.layers import Norm
from headjax.models.mlp import MLP
from headjax.models.reading import Reader
from headjax.models.screening import Screening
from headjax.models.sites import Activations, Edits
from headjax.models.softmax import KV, Context


@flax.struct.dataclass
class LayerStatics:
  """What differs by layer but is no parameter; leading `layer` axis.

  Attributes:
    window: `[layer]` int, tokens that a query sees; 0 means all.
    write: the bases that heads write in, if they are rotated.
    read: the bases whose blocks heads read, if they are rotated.
  """

  window: jax.Array
  write: Rotation | None
  read: Rotation | None


def layer_statics(config: ModelConfig) -> LayerStatics:
  """The statics of all layers, to be scanned beside the parameters."""
  return jax.tree.map(
    jnp.asarray,
    LayerStatics(
      jnp.array(config.windows, jnp.int32),
      config.write.rotation(config.sizes),
      config.read.rotation(config.sizes),
    ),
  )


@flax.struct.dataclass
class Heads:
  """What the first half of a block computed, as sites."""

  q: jax.Array
  k: jax.Array
  v: jax.Array
  scores: jax.Array | None
  pattern: jax.Array | None
  z: jax.Array


@flax.struct.dataclass
class Finished:
  """What the second half of a block computed, as sites."""

  resid_mid: jax.Array
  mlp_out: jax.Array
  resid_post: jax.Array


class Block(nn.Module):
  """A pre-norm transformer block.

  Attributes:
    config: of the model.
    explicit: whether softmax attention shows its scores and pattern.
    stream: where `__call__` holds the stream to be; None leaves it to the
      compiler.
  """

  config: ModelConfig
  explicit: bool = True
  stream: NamedSharding | None = None

  def setup(self):
    self.reader = Reader(self.config)
    if self.config.attention == "screening":
      self.attention = Screening(self.config)
    else:
      self.attention = Attention(self.config, self.explicit)
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
    if self.stream is not None:
      resid_pre = jax.lax.with_sharding_constraint(resid_pre, self.stream)
    resid_pre = sites.apply(edits.resid_pre, resid_pre)
    heads = self.attend(statics, resid_pre, context, edits=edits)
    attn_out = sites.apply(edits.attn_out, self.write(statics, heads.z))
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
    reads = self.reader(resid_pre, statics.read)
    if asking is None:
      q, k, v = self.attention.project(reads, "QKV")
    else:
      k, v = self.attention.project(reads, "KV")
      reads = self.reader(asking[0], statics.read)
      [q] = self.attention.project(reads, "Q")
    k, v = sites.apply(edits.k, k), sites.apply(edits.v, v)
    own = self.attention.place(k, v, context)
    q = sites.apply(edits.q, q)
    scores, pattern, z = self.attention.mix(
      statics.window,
      q,
      reads,
      context if asking is None else asking[1],
      (own,) if prefix is None else (prefix, own),
      edits,
    )
    return Heads(q, k, v, scores, pattern, sites.apply(edits.z, z))

  def place(self, k: jax.Array, v: jax.Array, context: Context) -> KV:
    """Keys and values ready to be cached, from those of a recorded run."""
    return self.attention.place(k, v, context)

  def mix(
    self,
    statics: LayerStatics,
    resid_pre: jax.Array,
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    context: Context,
  ) -> jax.Array:
    """The heads' outputs from given queries, keys and values.

    Args:
      statics: of this layer.
      resid_pre: `[batch, pos, d_model]`, for what else the heads read of it.
      q: `[batch, pos, head, d_key]`, as the site; likewise `k` and `v`.
      k: see `q`.
      v: see `q`.
      context: where the rows stand.

    Returns:
      `[batch, pos, head, d_head]`.
    """
    own = self.attention.place(k, v, context)
    reads = self.reader(resid_pre, statics.read)
    mixed = self.attention.mix(
      statics.window, q, reads, context, (own,), Edits()
    )
    return mixed[2]

  def write(self, statics: LayerStatics, z: jax.Array) -> jax.Array:
    """`[batch, pos, d_model]`: what all heads together add."""
    return self.attention.write(z, statics.write)

  def write_per_head(
    self, statics: LayerStatics, z: jax.Array, heads: jax.Array
  ) -> jax.Array:
    """`[n, batch, pos, d_model]`: what each of some heads adds."""
    return self.attention.write_per_head(z, heads, statics.write)

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
