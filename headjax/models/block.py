"""One block, as two pure halves that every kind of forward shares.

`attend` turns the stream into heads, `finish` adds what the heads wrote, after
a norm where the model has one there, and runs the MLP. The scan over layers,
both sweeps and decoding are made of these two; a sweep enters between them with
another sum of the heads' writes.
"""

from typing import Any

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding

from headjax.geometry.designs import Rotation
from headjax.models import sites
from headjax.models.attention import Attention
from headjax.models.config import ModelConfig
from headjax.models.experts import Experts, Routing
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

  attn_out: jax.Array
  resid_mid: jax.Array | None
  routing: Routing
  mlp_out: jax.Array
  resid_post: jax.Array


class Block(nn.Module):
  """A transformer block.

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
    if self.config.norms_output or self.config.norms_stream:
      self.attn_out_norm = Norm(self.config)
      self.mlp_out_norm = Norm(self.config)
    if self.config.mlp != "none":
      if self.config.norms_input:
        self.mlp_norm = Norm(self.config)
      self.mlp = (Experts if self.config.n_experts else MLP)(self.config)

  def __call__(
    self,
    resid_pre: jax.Array,
    statics: LayerStatics,
    context: Context,
    edits: Edits,
    prefix: KV | None = None,
  ) -> tuple[jax.Array, Activations]:
    """The whole block, as the scan over layers wants it."""
    if self.stream is not None:
      resid_pre = jax.lax.with_sharding_constraint(resid_pre, self.stream)
    resid_pre = sites.apply(edits.resid_pre, resid_pre)
    heads = self.attend(statics, resid_pre, context, prefix=prefix, edits=edits)
    finished = self.finish(resid_pre, self.write(statics, heads.z), edits)
    activations = Activations(
      resid_pre=resid_pre, q=heads.q, k=heads.k, v=heads.v,
      scores=heads.scores, pattern=heads.pattern, z=heads.z,
      attn_out=finished.attn_out, resid_mid=finished.resid_mid,
      router_logits=finished.routing.logits,
      router_weights=finished.routing.weights,
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

  def inputs(
    self, statics: LayerStatics, resid_pre: jax.Array
  ) -> dict[str, jax.Array]:
    """What each head's maps make of the stream, before biases and q/k norms.

    Args:
      statics: of this layer.
      resid_pre: `[batch, pos, d_model]`.

    Returns:
      Q, K, V and, of a screening model, G: `[batch, pos, head, width]`, per
      query head.
    """
    return self.attention.inputs(self.reader(resid_pre, statics.read))

  def project(
    self, statics: LayerStatics, resid_pre: jax.Array, letter: str
  ) -> jax.Array:
    """One site of all heads, "Q", "K" or "V", `[batch, pos, head, width]`."""
    reads = self.reader(resid_pre, statics.read)
    return self.attention.project(reads, letter)[0]

  def project_apart(
    self, statics: LayerStatics, streams: jax.Array, letter: str
  ) -> jax.Array:
    """The same where each head reads a stream of its own.

    Only for inputs that read the whole stream and have no norm of q and k.

    Args:
      statics: of this layer.
      streams: `[head, batch, pos, d_model]`.
      letter: "Q", "K" or "V".
    """
    whole = self.reader(streams, statics.read).whole
    return self.attention.project_apart(whole, letter)

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
    prefix: KV | None = None,
  ) -> jax.Array:
    """The heads' outputs from given queries, keys and values.

    Args:
      statics: of this layer.
      resid_pre: `[batch, pos, d_model]`, for what else the heads read of it.
      q: `[batch, pos, head, d_key]`, as the site; likewise `k` and `v`.
      k: see `q`.
      v: see `q`.
      context: where the rows stand.
      prefix: cached keys and values of earlier positions, if any.

    Returns:
      `[batch, pos, head, d_head]`.
    """
    own = self.attention.place(k, v, context)
    parts = (own,) if prefix is None else (prefix, own)
    reads = self.reader(resid_pre, statics.read)
    mixed = self.attention.mix(
      statics.window, q, reads, context, parts, Edits()
    )
    return mixed[2]

  def write(self, statics: LayerStatics, z: jax.Array) -> jax.Array:
    """`[batch, pos, d_model]`: what all heads together write."""
    return self.attention.write(z, statics.write)

  def write_per_head(
    self, statics: LayerStatics, z: jax.Array, heads: jax.Array
  ) -> jax.Array:
    """`[n, batch, pos, d_model]`: what each of some heads writes."""
    return self.attention.write_per_head(z, heads, statics.write)

  def finish(
    self,
    resid_pre: jax.Array,
    written: jax.Array,
    edits: Edits = Edits(),
  ) -> Finished:
    """The second half: add what the heads wrote, then what the MLP does.

    Args:
      resid_pre: `[batch, pos, d_model]`.
      written: `[batch, pos, d_model]`, the sum of the heads' writes, from
        `write`, before a norm of the attention output.
      edits: of the sites from `attn_out` on.
    """
    config = self.config
    if config.norms_output:
      written = _settled(self.attn_out_norm(written))
    attn_out = sites.apply(edits.attn_out, written)
    # The halves of a parallel block read the same stream.
    stream = resid_pre + attn_out
    if config.norms_stream:
      stream = _settled(self.attn_out_norm(stream))
    resid_mid = None
    if not config.parallel:
      stream = resid_mid = sites.apply(edits.resid_mid, stream)
    read = resid_pre if config.parallel else stream
    routing, mlp_out = self._mlp(read, edits)
    resid_post = stream if mlp_out is None else stream + mlp_out
    if config.norms_stream and mlp_out is not None:
      resid_post = _settled(self.mlp_out_norm(resid_post))
    return Finished(
      attn_out,
      resid_mid,
      routing,
      jnp.zeros_like(stream) if mlp_out is None else mlp_out,
      sites.apply(edits.resid_post, resid_post),
    )

  def _mlp(self, x: jax.Array, edits: Edits) -> tuple[Routing, Any]:
    """The routing and what the MLP adds; None without one."""
    config, routing = self.config, Routing(None, None)
    if config.mlp == "none":
      return routing, None
    x = self.mlp_norm(x) if config.norms_input else x
    if config.n_experts:
      routing, y = self.mlp(x, edits)
    else:
      y = self.mlp(x)
    if config.norms_output:
      y = _settled(self.mlp_out_norm(y))
    return routing, sites.apply(edits.mlp_out, y)


def _settled(x: jax.Array) -> jax.Array:
  """The same, rounded as it would be were it read.

  A product and a sum that follow each other may become one operation with one
  rounding, so that an edit which changes nothing would change the last bit. A
  comparison keeps them apart; a barrier does not, on CPUs.
  """
  return jnp.maximum(x, jnp.finfo(x.dtype).min)
