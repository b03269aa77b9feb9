"""From which tokens does a head take what it writes at the answer? By kind.

A head's output is the sum over source positions of attention times value, so
its attention and its direct logit attribution split into parts, one for each
kind of source token.
"""

import functools
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from headjax import results
from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks
from headjax.interventions.direct_logits import frozen_reader
from headjax.interventions.leakage import check_additive
from headjax.interventions.prepared import labels
from headjax.interventions.questions import Batch, batch_of, check_pairs
from headjax.interventions.sweep import PRECISION, at_answer
from headjax.models import weights
from headjax.models.compiling import fast_jit
from headjax.models.decoder import Decoder, run
from headjax.models.load import LoadedModel


def by_source(
  model: LoadedModel,
  pairs: PromptPairs,
  kinds: np.ndarray,
  names: tuple[str, ...],
  *,
  examples: int = 32,
) -> xr.Dataset:
  """Attention and attribution at the answer, by the kind of source token.

  Args:
    model: from `load_model`.
    pairs: prompts; the references are not run.
    kinds: `[example, pos]` which of `names` a token is; -1 is none of them.
    names: of the kinds.
    examples: at once.

  Returns:
    A dataset with `attention[example, layer, head, source]`, in shares of
    attention, and `attribution[example, layer, head, source]`, in logits
    (nats): what a head takes from these tokens adds to the answer's logit less
    the foil's, through the frozen final norm. Over the sources they add up to
    what the head does.

  Raises:
    ValueError: kinds that do not fit, a model with screening attention, whose
      outputs are no sums of values, or one that norms its attention output.

  Source: paper C, attention sources and attribution per source.
  """
  check_pairs(model.config, pairs)
  check_additive(model.config)
  check(
    model.config.attention != "screening",
    "model",
    "screening attention",
    "heads whose outputs are sums of values",
    "this measurement has no meaning for it",
  )
  kinds = np.asarray(kinds)
  check(
    kinds.shape == pairs.clean.shape
    and kinds.min() >= -1
    and kinds.max() < len(names),
    "kinds",
    f"shape {kinds.shape}, {kinds.min()} to {kinds.max()}",
    f"shape {pairs.clean.shape}, -1 to {len(names) - 1}",
    "pass the kinds of these prompts",
  )
  began = time.perf_counter()
  examples = min(examples, len(pairs))
  config = model.config
  shape = (len(pairs), config.n_layers, config.n_heads, len(names))
  attention, attribution = np.zeros(shape), np.zeros(shape)
  with jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(pairs), examples):
      chosen = kinds[index][..., None] == np.arange(len(names))
      found = _by_source(
        model.model, model.params, batch_of(pairs, index), chosen
      )
      n = place.stop - place.start
      attention[place], attribution[place] = (np.asarray(x)[:n] for x in found)
  dims = ("example", "layer", "head", "source")
  looked = {"long_name": "attention at the answer", "units": "1"}
  wrote = {"long_name": "direct logit attribution", "units": results.LOGITS}
  provenance = results.provenance(
    model=model,
    pairs=pairs,
    wall_s=time.perf_counter() - began,
    chunk=examples,
    method="by source",
    position="last",
  )
  return xr.Dataset(
    {
      "attention": (dims, attention, looked),
      "attribution": (dims, attribution, wrote),
    },
    labels(pairs) | {"source": list(names)},
    attrs=provenance,
  )


@functools.partial(fast_jit, static_argnames=("model",))
def _by_source(
  model: Decoder, params: Any, batch: Batch, chosen: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """`[batch, layer, head, kind]` attention and attribution."""
  resid, acts = run(model, params, batch.clean, key_valid=batch.key_valid)
  last = at_answer(resid, batch.answer_pos)
  read = frozen_reader(model, params, last, batch.answer, batch.foil)
  at = batch.answer_pos.reshape(1, -1, 1, 1, 1)
  pattern = jnp.take_along_axis(acts.pattern, at, axis=3)[:, :, :, 0]
  W_O = weights.per_query_head(params, model.config, "W_O")
  through = jnp.einsum("bd,lhed->lbhe", read.astype(W_O.dtype), W_O)
  value = jnp.einsum("lbkhe,lbhe->lbhk", acts.v, through)
  kinds = chosen.astype(pattern.dtype)

  def summed(x):
    return jnp.einsum("lbhk,bks->blhs", x, kinds)

  return summed(pattern), summed(pattern * value)
