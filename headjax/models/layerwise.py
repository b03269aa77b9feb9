"""How does one see every layer of a forward, and keep only what one wants?

`run` gives back the activations of all layers at once. Attention patterns and
cached keys are too much for that: here the same block runs in a scan whose
caller says, layer by layer, what is kept, and what each layer may look back on.
"""

from collections.abc import Callable
from typing import Any

import jax

from headjax.models import weights
from headjax.models.block import Block, layer_statics
from headjax.models.decoder import Decoder
from headjax.models.sites import Activations, Edits
from headjax.models.softmax import KV, Context

See = Callable[[Any, Activations], Any]


def scan_layers(
  model: Decoder,
  params: Any,
  tokens: jax.Array,
  context: Context,
  see: See,
  edits: Edits = Edits(),
  *,
  cached: tuple[jax.Array, ...] | None = None,
  prefix: Callable[..., KV] | None = None,
) -> tuple[jax.Array, Any]:
  """Runs the model and keeps of every layer what `see` makes of it; traceable.

  Args:
    model: the `Decoder`; static.
    params: its parameters.
    tokens: `[batch, pos]` ids.
    context: where they stand.
    see: from a block's parameters and its activations (without layer axis) to
      what is kept.
    edits: what to change.
    cached: arrays `[layer, ...]` of earlier tokens, if there are any.
    prefix: from a layer's share of `cached` to its keys and values.

  Returns:
    The final stream `[batch, pos, d_model]`, and what was kept, with a leading
    layer axis.
  """
  block = Block(model.config)

  def layer(resid, inputs):
    params, statics, edits, cached = inputs
    before = None if cached is None else prefix(*cached)
    resid, activations = block.apply(
      {"params": params}, resid, statics, context, edits, before
    )
    return resid, see(params, activations)

  resid = model.apply(
    {"params": params}, tokens, context.positions, method=_embed
  )
  statics = layer_statics(model.config)
  return jax.lax.scan(
    layer, resid, (weights.blocks(params), statics, edits, cached)
  )


def _embed(model: Decoder, tokens, positions):
  return model.embed(tokens, positions)
