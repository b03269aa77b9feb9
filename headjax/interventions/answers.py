"""How surely does a model answer? The logit difference of every prompt."""

import functools
from typing import Any

import jax
import numpy as np

from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks
from headjax.interventions.metrics import LogitDifference
from headjax.interventions.questions import Batch, batch_of, check_pairs
from headjax.interventions.sweep import PRECISION, at_answer
from headjax.models.compiling import fast_jit
from headjax.models.decoder import Decoder, run
from headjax.models.load import LoadedModel


def logit_differences(
  model: LoadedModel, pairs: PromptPairs, *, examples: int = 64
) -> np.ndarray:
  """The logit of the answer less that of the foil, of each clean prompt.

  Args:
    model: from `load_model`, or one whose weights were edited.
    pairs: prompts.
    examples: at once.

  Returns:
    `[example]` nats.

  Raises:
    ValueError: the model cannot run the prompts.
  """
  check_pairs(model.config, pairs)
  examples = min(examples, len(pairs))
  found = np.zeros(len(pairs))
  with jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(pairs), examples):
      values = _difference(model.model, model.params, batch_of(pairs, index))
      found[place] = values[: place.stop - place.start]
  return found


@functools.partial(fast_jit, static_argnames=("model",))
def _difference(model: Decoder, params: Any, batch: Batch) -> jax.Array:
  resid, _ = run(model, params, batch.clean, key_valid=batch.key_valid)
  metric = LogitDifference(batch.answer, batch.foil)
  return metric(model, params, at_answer(resid, batch.answer_pos))
