"""What would patching every head do, to first order? One backward pass.

The effect of a patch is the change of the metric as a gate goes from 0 to 1;
its attribution is minus the derivative in the gate. It is no substitute for
patching: in saturated networks the two disagree, so a result says
`attribution`, never `effect`. It assumes nothing of how heads write: the
gradient passes through norms of the attention output, and through the weights
of the chosen experts, but not through the choice, which has no slope.
"""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from headjax import results
from headjax.checks import check, check_choice
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks
from headjax.interventions.metrics import LogitDifference
from headjax.interventions.questions import batch_of, check_pairs
from headjax.interventions.record import HEAD_SITES, record
from headjax.interventions.sweep import PRECISION, at_answer
from headjax.models.decoder import run
from headjax.models.load import LoadedModel
from headjax.models.sites import Edit, Edits


def attribute_heads(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  site: str = "z",
  steps: int = 0,
  examples: int = 32,
) -> xr.Dataset:
  """Gradient attribution of every head, per example.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts.
    site: "z", "q", "k" or "v".
    steps: 0 takes the gradient at the clean run. Otherwise it is averaged
      over this many midpoints of the path on which all heads go from clean to
      reference together (integrated gradients); the attributions then sum to
      the effect of patching all heads, up to the error of the midpoint rule.
    examples: at once.

  Returns:
    A dataset with `attribution[example, layer, head]`, in the sign of an
    effect (positive: the head helps), and `base[example]`, both logit
    differences.

  Raises:
    ValueError: an unknown site, a negative number of steps, or ids outside
      the vocabulary.

  Source: gradient in the gate at 0, the first-order form of activation
    patching (Kramar et al. 2024, AtP*, section 2); integrated gradients after
    Sundararajan et al. 2017, equation 3.
  """
  check_choice("site", site, HEAD_SITES)
  check(steps >= 0, "steps", steps, "0 or more", "pass 0 for one gradient")
  check_pairs(model.config, pairs)
  began = time.perf_counter()
  examples = min(examples, len(pairs))
  shape = (len(pairs), model.config.n_layers, model.config.n_heads)
  attribution, base = np.zeros(shape), np.zeros(len(pairs))
  with jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(pairs), examples):
      n = place.stop - place.start
      part, value = _attribute(
        model.model, site, steps, model.params, batch_of(pairs, index)
      )
      attribution[place], base[place] = part[:n], value[:n]
    provenance = results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=examples,
      method="integrated gradient" if steps else "gradient",
      site=site,
      steps=steps,
    )
  labelled = results.dataset(
    attribution,
    base,
    group=pairs.group,
    condition=pairs.condition,
    provenance=provenance,
  )
  return labelled.rename(effect="attribution")


@functools.partial(jax.jit, static_argnames=("model", "site", "steps"))
def _attribute(model, site, steps, params, batch):
  """`[example, layer, head]` attributions and `[example]` base."""
  reference = record(model, params, batch.reference, key_valid=batch.key_valid)
  value = getattr(reference, site)
  metric = LogitDifference(batch.answer, batch.foil)

  def total(gate):
    edits = Edits(**{site: (Edit(gate, value),)})
    resid, _ = run(model, params, batch.clean, edits, key_valid=batch.key_valid)
    found = metric(model, params, at_answer(resid, batch.answer_pos))
    return found.sum(), found

  def gradient(level):
    gate = jnp.full((*value.shape[:2], 1, value.shape[3], 1), level)
    (_, found), slope = jax.value_and_grad(total, has_aux=True)(
      gate.astype(value.dtype)
    )
    return slope, found

  slope, base = gradient(0.0)
  if steps:
    levels = (jnp.arange(steps) + 0.5) / steps
    slope = jax.lax.map(lambda level: gradient(level)[0], levels).mean(0)
  return -jnp.moveaxis(slope[:, :, 0, :, 0], 0, 1), base
