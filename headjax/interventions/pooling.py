"""How are sums over all examples made without keeping the examples?

A compiled function returns the sums of one chunk; they are added up in
float64 on the host, so memory does not grow with the examples.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from tqdm.auto import tqdm

from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks
from headjax.interventions.questions import Batch, batch_of, check_pairs
from headjax.interventions.sweep import PRECISION
from headjax.models.load import LoadedModel


def pooled(
  part: Callable[[Any, Any, Batch], Any],
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  examples: int,
  progress: bool = False,
) -> Any:
  """The sum of `part` over all pairs.

  Args:
    part: from the `Decoder`, its parameters and a batch to a pytree of sums
      over the positions where `key_valid`; compiled by the caller. The last
      batch is filled up with pairs that have none.
    model: from `load_model`.
    pairs: clean and reference prompts.
    examples: at once.
    progress: whether to show a progress bar.

  Returns:
    The pytree, in float64 on the host.

  Raises:
    ValueError: `examples` is not positive, or the model cannot run the pairs.
  """
  check(
    examples >= 1, "examples", examples, "at least 1", "ask for one or more"
  )
  check_pairs(model.config, pairs)
  n_devices = min(jax.local_device_count(), len(pairs))
  size = -(-min(examples, len(pairs)) // n_devices) * n_devices
  params = chunks.replicate(model.params, n_devices)
  total = None
  bar = tqdm(
    total=len(pairs), unit="pair", desc=pairs.name, disable=not progress
  )
  with bar, jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(pairs), size):
      n = place.stop - place.start
      batch = batch_of(pairs, index)
      batch.key_valid[n:] = False
      sums = part(model.model, params, chunks.spread(batch, n_devices))
      sums = jax.tree.map(lambda x: np.asarray(x, np.float64), sums)
      total = sums if total is None else jax.tree.map(np.add, total, sums)
      bar.update(n)
  return total


def as_pairs(sequences: np.ndarray) -> PromptPairs:
  """Text as prompts, for sums that need no answer and no reference.

  Args:
    sequences: `[sequence, pos]` ids.
  """
  first = np.asarray(sequences)[:, 0]
  return PromptPairs(sequences, sequences, first, first, name="text")
