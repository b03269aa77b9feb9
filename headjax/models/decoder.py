"""The model: one pure function from tokens and edits to the final stream.

The forward returns the final residual stream, not logits: `unembed` is
separate, so that a metric can unembed one position and two tokens instead of
all positions and the whole vocabulary.
"""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from headjax.checks import check, check_choice
from headjax.models.block import Block, layer_statics
from headjax.models.config import ModelConfig
from headjax.models.layers import (
  INIT,
  Embedding,
  Norm,
  UnitEmbedding,
  bend,
  rows,
)
from headjax.models.sites import Activations, Edits, check_edits
from headjax.models.softmax import Context


class Unembedding(nn.Module):
  """The untied unembedding matrix."""

  config: ModelConfig

  @nn.compact
  def __call__(self) -> jax.Array:
    """`[d_model, vocab]`."""
    shape = (self.config.d_model, self.config.d_vocab)
    return self.param("W_U", INIT, shape)


class Decoder(nn.Module):
  """A stack of blocks under one scan; every parameter has a layer axis.

  Attributes:
    config: what is computed. The others say how, and change no number but in
      its last bits.
    attention: "explicit", or "fused", faster in training, where `scores` and
      `pattern` are neither read nor edited (softmax attention only).
    remat: whether the backward pass computes each block again instead of
      keeping what is inside.
    unroll: layers in one turn of the scan.
    stream: where the stream of every layer is, among several devices; None
      leaves it to the compiler, which may then cut it along `d_model`.
  """

  config: ModelConfig
  attention: str = "explicit"
  remat: bool = False
  unroll: int = 1
  stream: NamedSharding | None = None

  def setup(self):
    # Inside a scan nothing can merge the two computations.
    block = nn.remat(Block, prevent_cse=False) if self.remat else Block
    scanned = nn.scan(
      block,
      variable_axes={"params": 0},
      split_rngs={"params": True},
      in_axes=(0, nn.broadcast, 0),
      length=self.config.n_layers,
      unroll=self.unroll,
    )
    screens = self.config.attention == "screening"
    self.embed = (UnitEmbedding if screens else Embedding)(self.config)
    explicit = self.attention == "explicit"
    self.blocks = scanned(self.config, explicit, self.stream)
    if not self.config.norms_stream:
      self.final_norm = Norm(self.config)
    if not self.config.tied:
      self.unembed_ = Unembedding(self.config, name="unembed")

  def __call__(
    self,
    tokens: jax.Array,
    edits: Edits = Edits(),
    positions: jax.Array | None = None,
    key_valid: jax.Array | None = None,
  ) -> tuple[jax.Array, Activations]:
    """The final stream and the activations of all layers."""
    context = default_context(tokens, positions, key_valid)
    resid = self.embed(tokens, context.positions)
    resid, activations = self.blocks(
      resid, layer_statics(self.config), context, edits
    )
    if self.is_initializing():
      self.logits(resid)
    return resid, activations

  def normed(self, resid: jax.Array) -> jax.Array:
    """A stream `[..., d_model]` after the final norm, where there is one."""
    return resid if self.config.norms_stream else self.final_norm(resid)

  def logits(self, resid: jax.Array) -> jax.Array:
    """`[..., vocab]` logits of the stream."""
    logits = rows(self.normed(resid), self.directions().T)
    return bend(logits, self.config.logit_cap)

  def directions(self) -> jax.Array:
    """`[vocab, d_model]`: the unembedding directions of all tokens."""
    tied = self.config.tied
    return self.embed.all_directions() if tied else self.unembed_().T

  def columns(self, tokens: jax.Array) -> jax.Array:
    """`[..., d_model]`: the unembedding directions of `tokens`."""
    if self.config.tied:
      return self.embed.directions(tokens)
    return jnp.moveaxis(self.unembed_(), 0, 1)[tokens]


def default_context(
  tokens: jax.Array,
  positions: jax.Array | None = None,
  key_valid: jax.Array | None = None,
) -> Context:
  """Positions 0, 1, ... and every key valid, unless given."""
  plain = positions is None and key_valid is None
  if positions is None:
    line = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None]
    positions = jnp.broadcast_to(line, tokens.shape)
  if key_valid is None:
    key_valid = jnp.ones(tokens.shape, bool)
  return Context(positions, key_valid, plain)


def run(
  model: Decoder,
  params: Any,
  tokens: jax.Array,
  edits: Edits = Edits(),
  *,
  positions: jax.Array | None = None,
  key_valid: jax.Array | None = None,
  attention: str | None = None,
) -> tuple[jax.Array, Activations]:
  """Runs the model, with edits.

  Args:
    model: a `Decoder`; static.
    params: its parameters.
    tokens: `[batch, pos]` token ids. Pad on the right and nothing else is
      needed in a causal model; otherwise say so by the next two.
    edits: what to change; `Edits()` is the unchanged forward.
    positions: `[batch, pos]` true positions, in tokens; default 0, 1, ...
    key_valid: `[batch, pos]` bool, False where a token is padding.
    attention: "explicit" or "fused", in place of the model's own.

  Returns:
    The final stream `[batch, pos, d_model]`, before the final norm, and the
    `Activations` of all layers. Under an outer `jit`, what is not read of
    them is not computed; called by itself, `run` returns them all.

  Raises:
    ValueError: an edit does not fit the model, the sequence is longer than
      the context, or (outside `jit` only) an id is not in the vocabulary.

  Examples:
    A tiny model with random weights:

    >>> from headjax.models import weights
    >>> config = ModelConfig(2, 2, 8, 4, 16, d_vocab=11, n_ctx=6)
    >>> draw = np.random.default_rng(0).standard_normal
    >>> raw = {k: draw(s, "f") for k, s in weights.shapes(config).items()}
    >>> params = weights.pack(config, raw, "tiny")
    >>> resid, acts = run(Decoder(config), params, jnp.array([[5, 6, 7]]))
    >>> resid.shape, acts.z.shape
    ((1, 3, 8), (2, 1, 3, 2, 4))
  """
  if attention is not None:
    model = model.clone(attention=attention)
  check_choice("attention", model.attention, ("explicit", "fused"))
  check_edits(model.config, edits, explicit=model.attention == "explicit")
  check_tokens(model.config, tokens)
  return _run(model, params, tokens, edits, positions, key_valid)


@functools.partial(jax.jit, static_argnames=("model",))
def _run(model, params, tokens, edits, positions, key_valid):
  return model.apply({"params": params}, tokens, edits, positions, key_valid)


def check_tokens(config: ModelConfig, tokens) -> None:
  """Refuses tokens that the model cannot run."""
  shape = jnp.shape(tokens)
  check(
    len(shape) == 2 and shape[1] <= config.n_ctx,
    "tokens",
    f"shape {shape}",
    f"[batch, pos] with at most {config.n_ctx} positions",
    "shorten the sequences",
  )
  if isinstance(tokens, jax.core.Tracer):
    return
  ids = np.asarray(tokens)
  low, high = ids.min(initial=0), ids.max(initial=0)
  check(
    0 <= low and high < config.d_vocab,
    "tokens",
    f"ids {low} to {high}",
    f"ids 0 to {config.d_vocab - 1}",
    "use the tokenizer of this model",
  )


def unembed(model: Decoder, params: Any, resid: jax.Array) -> jax.Array:
  """The logits of a stream.

  Args:
    model: a `Decoder`.
    params: its parameters.
    resid: `[..., d_model]`, before the final norm, as `run` gives it.

  Returns:
    `[..., vocab]` logits, in nats.
  """
  return model.apply({"params": params}, resid, method=Decoder.logits)


def unembed_tokens(
  model: Decoder, params: Any, resid: jax.Array, tokens: jax.Array
) -> jax.Array:
  """The logit of one token per row, without the rest of the vocabulary.

  Args:
    model: a `Decoder`.
    params: its parameters.
    resid: `[..., d_model]`.
    tokens: int, the leading shape of `resid`.

  Returns:
    Logits in the leading shape of `resid`.
  """
  variables = {"params": params}
  x = model.apply(variables, resid, method=Decoder.normed)
  u = model.apply(variables, tokens, method=Decoder.columns)
  return bend((x * u.astype(x.dtype)).sum(-1), model.config.logit_cap)
