"""Does training push a head to read what it writes? Traces of one gradient.

G_h is the gradient of the language modelling loss in the value weights of head
h, O_j what head j of its layer writes. tr(G_h O_j) is the slope of the loss
along the multiple of the identity in the map that writes of j, read by h's
values, go through: for j = h that of the head on its own space.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check
from headjax.interventions.gradients import next_token_loss
from headjax.interventions.pooling import as_pairs, pooled
from headjax.interventions.questions import Batch
from headjax.models import weights
from headjax.models.compiling import fast_jit
from headjax.models.decoder import Decoder, run
from headjax.models.load import LoadedModel
from headjax.models.ungroup import ungroup


def value_gradient_traces(
  model: LoadedModel,
  sequences: np.ndarray,
  *,
  examples: int = 1,
  progress: bool = False,
) -> np.ndarray:
  """tr(G_h O_j) of all pairs of heads of each layer.

  With grouped K/V heads, G_h is that of query head h alone.

  Args:
    model: from `load_model`.
    sequences: `[sequence, pos]` ids of text, every one but the first
      predicted.
    examples: sequences at once; their logits are all in memory.
    progress: whether to show a progress bar.

  Returns:
    `[layer, head, writer]` float64, of the loss summed over tokens, in nats.

  Raises:
    ValueError: values that read a block by design, or ids that the model
      cannot run.

  Source: paper A, section 5.4 and appendix C (self-alignment statistics).
  """
  check(
    "V" not in model.config.read.blocks,
    "model",
    "values that read one block by design",
    "values that may read all writes of the layer",
    "the gradient has nothing to choose from here",
  )
  return pooled(
    _traces, model, as_pairs(sequences), examples=examples, progress=progress
  )


@functools.partial(fast_jit, static_argnames=("model",))
def _traces(model: Decoder, params: Any, batch: Batch) -> jax.Array:
  config, params = ungroup(model.config, params)
  ungrouped = Decoder(config)

  def loss(W_V):
    changed = weights.replaced(params, {"W_V": W_V})
    resid, _ = run(ungrouped, changed, batch.clean, key_valid=batch.key_valid)
    return next_token_loss(ungrouped, changed, batch, resid)

  gradient = jax.grad(loss)(weights.get(params, "W_V"))
  W_O = weights.per_query_head(params, config, "W_O")
  return jnp.einsum("ldhe,ljed->lhj", gradient, W_O)
