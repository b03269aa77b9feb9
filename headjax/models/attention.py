"""How do softmax heads project the stream and attend to it?"""

import flax.linen as nn
import jax
import jax.numpy as jnp

from headjax.models import fused, softmax
from headjax.models.layers import INIT, Norm, rows, rows_by_head, shift
from headjax.models.mlp import ACTIVATIONS
from headjax.models.reading import Reads
from headjax.models.sites import Edits
from headjax.models.softmax import KV, Context
from headjax.models.writing import Writing


class Attention(Writing):
  """Softmax attention per query head.

  Attributes:
    explicit: whether scores and pattern are computed to be read and edited;
      otherwise they are None.
  """

  explicit: bool = True

  def setup(self):
    config = self.config
    for letter, heads in zip("QKV", self._heads(), strict=True):
      blocks = letter in config.read.blocks
      shape = (heads, config.d_head, config.d_head)
      if not blocks:
        shape = (config.d_model, heads, config.d_head)
      setattr(self, f"W_{letter}", self.param(f"W_{letter}", INIT, shape))
      if config.qkv_bias:
        bias = self.param(
          f"b_{letter}", nn.initializers.zeros, (heads, config.d_head)
        )
        setattr(self, f"b_{letter}", bias)
    if config.qk_norm:
      self.q_norm, self.k_norm = Norm(config), Norm(config)
    self.set_up_write(0.02 / (2 * config.n_layers) ** 0.5)
    if config.value_adapter:
      width, out = config.value_adapter, config.n_kv_heads * config.d_head
      self.adapter_in = self.param("adapter_in", INIT, (config.d_model, width))
      self.adapter_out = self.param(
        "adapter_out", nn.initializers.zeros, (width, out)
      )

  def _heads(self):
    config = self.config
    return config.n_heads, config.n_kv_heads, config.n_kv_heads

  def project(self, reads: Reads, letters: str) -> list[jax.Array]:
    """Queries, keys or values, after bias and norm, repeated per query head.

    Args:
      reads: the normalised stream.
      letters: of "QKV". Those that read a block share one product.

    Returns:
      `[batch, pos, head, d_head]` for each letter.
    """
    found = self._products(reads, letters)
    return [self._finish(letter, found[letter]) for letter in letters]

  def inputs(self, reads: Reads) -> dict[str, jax.Array]:
    """What each query head's maps make of the normalised stream.

    That is before the bias, which cancels in differences, and before the norm
    of q and k, which mixes the heads.

    Returns:
      Q, K and V, each `[batch, pos, head, d_head]`.
    """
    found = self._products(reads, "QKV")
    return {letter: self._repeat(letter, y) for letter, y in found.items()}

  def _products(self, reads: Reads, letters: str) -> dict[str, jax.Array]:
    blocks = self.config.read.blocks
    found = {}
    for kind in ({*letters} & {*blocks}, {*letters} - {*blocks}):
      names = [letter for letter in letters if letter in kind]
      if names:
        found |= self._product(reads, names, blocked=names[0] in blocks)
    if self.config.value_adapter and "V" in letters:
      found["V"] = found["V"] + self._adapted(reads.whole)
    return found

  def _product(self, reads: Reads, names: list[str], *, blocked: bool):
    """The products of `names`, one for all that read blocks."""
    weights = [getattr(self, f"W_{name}") for name in names]
    if blocked:
      joined = jnp.concatenate(weights, axis=-1)
      y = jnp.einsum(
        "bphe,hef->bphf", reads.blocks, joined.astype(reads.blocks.dtype)
      )
      return dict(zip(names, jnp.split(y, len(names), axis=-1), strict=True))
    return {
      name: rows_by_head(reads.whole, weight)
      for name, weight in zip(names, weights, strict=True)
    }

  def _adapted(self, x: jax.Array) -> jax.Array:
    """The nonlinear path to the values, `[batch, pos, kv_head, d_head]`."""
    hidden = ACTIVATIONS["gelu_tanh"](rows(x, self.adapter_in))
    y = rows(hidden, self.adapter_out)
    return y.reshape(*x.shape[:-1], -1, self.config.d_head)

  def _finish(self, letter: str, y: jax.Array) -> jax.Array:
    config = self.config
    if config.qkv_bias:
      y = shift(y, getattr(self, f"b_{letter}"))
    if config.qk_norm and letter != "V":
      norm = self.q_norm if letter == "Q" else self.k_norm
      y = norm(y.reshape(*y.shape[:-2], -1)).reshape(y.shape)
    if config.qkv_clip is not None:
      y = jnp.clip(y, -config.qkv_clip, config.qkv_clip)
    return self._repeat(letter, y)

  def project_apart(self, whole: jax.Array, letter: str) -> jax.Array:
    """As `project`, of inputs without a norm, each from its own stream.

    Args:
      whole: `[head, batch, pos, d_model]`, the stream of each query head.
      letter: "Q", "K" or "V".

    Returns:
      `[batch, pos, head, d_head]`.
    """
    config = self.config
    weight = self._repeat(letter, getattr(self, f"W_{letter}"), axis=1)
    y = jnp.einsum("hbpd,dhe->bphe", whole, weight.astype(whole.dtype))
    if config.value_adapter and letter == "V":
      hidden = ACTIVATIONS["gelu_tanh"](rows(whole, self.adapter_in))
      out = self.adapter_out.reshape(-1, config.n_kv_heads, config.d_head)
      out = self._repeat(letter, out, axis=1).astype(whole.dtype)
      y = y + jnp.einsum("hbpf,fhe->bphe", hidden, out)
    if config.qkv_bias:
      y = shift(y, self._repeat(letter, getattr(self, f"b_{letter}"), axis=0))
    if config.qkv_clip is not None:
      y = jnp.clip(y, -config.qkv_clip, config.qkv_clip)
    return y

  def _repeat(self, letter: str, y: jax.Array, axis: int = 2) -> jax.Array:
    """Per query head."""
    group = 1 if letter == "Q" else self.config.group_size
    return jnp.repeat(y, group, axis=axis)

  def place(self, k: jax.Array, v: jax.Array, context: Context) -> KV:
    """Keys and values ready to be attended to."""
    return KV(softmax.turn(self.config, k, context), v, context)

  def mix(
    self,
    window: jax.Array,
    q: jax.Array,
    reads: Reads,
    context: Context,
    parts: tuple[KV, ...],
    edits: Edits,
  ) -> tuple[jax.Array | None, jax.Array | None, jax.Array]:
    """Scores, pattern and z of queries `[batch, query_pos, head, d_head]`.

    The queries' rows of the normalised stream, `reads`, do not matter here.
    """
    if not self.explicit:
      [own] = parts
      return None, None, fused.attend(self.config, window, q, context, own)
    return softmax.attend(self.config, window, q, context, parts, edits)
