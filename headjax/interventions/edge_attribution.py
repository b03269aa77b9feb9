"""What would patching every edge do, to first order? Two passes.

The attribution of an edge is what its sender gives in the clean run, less what
it gives in the reference run, times the gradient of the metric in what its
receiver reads: the derivative of the metric in the edge's mask. It is no
substitute for patching the edge, so a result says `attribution`, never
`effect`. As in `headjax.interventions.attribution`, positive means that the
edge helps.
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
from headjax.interventions import chunks, nodes
from headjax.interventions.graph import along, input_senders, sent
from headjax.interventions.metrics import LogitDifference
from headjax.interventions.questions import Batch, batch_of, check_pairs
from headjax.interventions.sweep import PRECISION, at_answer
from headjax.models.decoder import Decoder, default_context
from headjax.models.load import LoadedModel


def attribute_edges(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  steps: int = 0,
  examples: int = 8,
) -> xr.Dataset:
  """Gradient attribution of every edge of the model's graph, per example.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts.
    steps: 0 takes the gradient at the clean run (EAP). Otherwise it is averaged
      over so many runs whose input senders are mixed, from those of the
      reference prompt up to one step before the clean one (EAP-IG).
    examples: at once.

  Returns:
    A dataset with `attribution[example, receiver, sender]` in logits (nats), 0
    where there is no edge, the names of receivers and senders as coordinates,
    and `base[example]`, the logit difference of the clean run.

  Raises:
    ValueError: the model's parts do not add up, a negative number of steps, or
      ids outside the vocabulary.

  Source: EAP-IG (Hanna et al. 2024), with its left end of each step; EAP (Syed
  et al. 2023) for `steps=0`.
  """
  check(steps >= 0, "steps", steps, "0 or more", "pass 0 for one gradient")
  check_pairs(model.config, pairs)
  nodes.check_splits(model.config)
  began = time.perf_counter()
  examples = min(examples, len(pairs))
  there = nodes.possible(model.config)
  found, base = np.zeros((len(pairs), *there.shape)), np.zeros(len(pairs))
  with jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(pairs), examples):
      n = place.stop - place.start
      part, value = _attribute(
        model.model, steps, model.params, batch_of(pairs, index)
      )
      found[place], base[place] = part[:n], value[:n]
    provenance = results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=examples,
      method="integrated edge gradient" if steps else "edge gradient",
      steps=steps,
    )
  about = {"long_name": "edge attribution", "units": results.LOGITS}
  names = ("example", "receiver", "sender")
  return xr.Dataset(
    {
      "attribution": (names, np.where(there, found, 0), about),
      "base": ("example", base, about | {"long_name": "logit difference"}),
    },
    {
      "receiver": [str(node) for node in nodes.receivers(model.config)],
      "sender": [str(node) for node in nodes.senders(model.config)],
    },
    attrs=provenance,
  )


@functools.partial(jax.jit, static_argnames=("model", "steps"))
def _attribute(model: Decoder, steps: int, params: Any, batch: Batch):
  """`[example, receiver, sender]` attributions and `[example]` base."""
  clean, reference = (
    sent(model, params, tokens, key_valid=batch.key_valid)
    for tokens in (batch.clean, batch.reference)
  )
  context = default_context(batch.clean, None, batch.key_valid)
  first = [
    input_senders(model, params, tokens, context)
    for tokens in (batch.reference, batch.clean)
  ]
  metric = LogitDifference(batch.answer, batch.foil)
  shape = nodes.possible(model.config).shape
  mask = jnp.ones(shape, clean.dtype)

  def total(added, level):
    given = first[0] + level * (first[1] - first[0])
    resid = along(model, params, given, mask, 0 * clean, context, added=added)
    found = metric(model, params, at_answer(resid, batch.answer_pos))
    return found.sum(), found

  def gradient(level):
    added = jnp.zeros((shape[0], *clean.shape[1:]), clean.dtype)
    (_, found), slope = jax.value_and_grad(total, has_aux=True)(added, level)
    return slope, found

  slope, base = gradient(jnp.ones((), clean.dtype))
  if steps:
    levels = jnp.arange(steps, dtype=clean.dtype) / steps
    slope = jax.lax.map(lambda level: gradient(level)[0], levels).mean(0)
  return jnp.einsum("sbpd,rbpd->brs", clean - reference, slope), base
