"""What does each head write on average? One vector a head."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headjax.data.pairs import PromptPairs
from headjax.interventions.leakage import check_additive
from headjax.interventions.pooling import pooled
from headjax.interventions.questions import Batch
from headjax.interventions.record import record
from headjax.models import weights
from headjax.models.compiling import fast_jit
from headjax.models.decoder import Decoder
from headjax.models.load import LoadedModel


def mean_writes(
  model: LoadedModel, pairs: PromptPairs, *, examples: int = 64
) -> np.ndarray:
  """The mean over clean prompts of what each head writes at the answer.

  Args:
    model: from `load_model`.
    pairs: prompts.
    examples: at once.

  Returns:
    `[layer, head, d_model]` float64, in units of the stream.

  Raises:
    ValueError: the model norms its attention output, behind which no head has
      a write of its own.
  """
  check_additive(model.config)
  total = pooled(_writes, model, pairs, examples=examples)
  return total / len(pairs)


@functools.partial(fast_jit, static_argnames=("model",))
def _writes(model: Decoder, params: Any, batch: Batch) -> jax.Array:
  z = record(model, params, batch.clean, key_valid=batch.key_valid).z
  line = jnp.arange(z.shape[2])[None]
  here = (line == batch.answer_pos[:, None]) & batch.key_valid
  W_O = weights.per_query_head(params, model.config, "W_O")
  summed = jnp.einsum("lbphe,bp->lhe", z, here.astype(z.dtype))
  return jnp.einsum("lhe,lhed->lhd", summed, W_O)
