"""What does each attention head do on these prompts? All of them, at once.

`patch_heads` replaces every head's output (or query, key, value), one head at
a time, by its value on the reference prompt, by zero or by its mean, and
reports how much the metric drops, per example.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from headjax import results
from headjax.checks import check_choice
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks
from headjax.interventions.batches import Batches
from headjax.interventions.edits import head_gates
from headjax.interventions.questions import (
  METRICS,
  POSITIONS,
  Question,
  batch_of,
  check_pairs,
  first_change,
  general_inputs,
  site_sum,
  suffix_inputs,
)
from headjax.interventions.record import HEAD_SITES
from headjax.interventions.sweep import (
  PRECISION,
  Sweep,
  general_sweep,
  sweep_layers,
)
from headjax.models.load import LoadedModel
from headjax.models.sites import Edit, Edits

METHODS = ("general", "suffix")
ABLATIONS = ("mean", "reference", "zero")


def patch_heads(
  model: LoadedModel,
  pairs: PromptPairs,
  method: str = "suffix",
  *,
  site: str = "z",
  position: str = "all",
  ablation: str = "reference",
  metric: str = "logit_difference",
  budget_bytes: int = 2 * chunks.GIB,
  progress: bool = False,
) -> xr.Dataset:
  """Patches every head, each alone, and measures the drop of the metric.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts, from `load_task` or your own.
    method: "suffix" computes only what can change; "general" runs the whole
      model per head and is the definition that the other is tested against.
    site: what to replace: a head's output "z", or its "q", "k" or "v" (of one
      query head, also where K/V heads are shared).
    position: "all" positions of the prompt, or the "last" one alone.
    ablation: by the value on the "reference" prompt, by "zero", or by the
      "mean" over all positions of all clean prompts.
    metric: "logit_difference" of answer and foil, "log_probability" of the
      answer, or "kl", the divergence KL(clean || patched) of the whole
      next-token distribution.
    budget_bytes: memory for the sweep, per device, beside the parameters.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `effect[example, layer, head]` in nats, clean minus patched
    (positive: the head helped; for "kl" the divergence), `base[example]`, the
    metric of the clean run, and the provenance in its attributes.

  Raises:
    ValueError: an unknown choice, ids outside the vocabulary, prompts longer
      than the context, or a budget that not one example fits.

  Examples:
    On a tiny model with random weights:

    >>> from headjax.models import weights
    >>> from headjax.models.config import ModelConfig
    >>> config = ModelConfig(2, 2, 8, 4, 16, d_vocab=11, n_ctx=6)
    >>> draw = np.random.default_rng(0).standard_normal
    >>> raw = {k: draw(s, "f") for k, s in weights.shapes(config).items()}
    >>> params = weights.pack(config, raw, "tiny")
    >>> tiny = LoadedModel(config, params, None, "tiny", "")
    >>> pairs = PromptPairs([[5, 6, 7]] * 4, [[5, 8, 7]] * 4, [1] * 4, [2] * 4)
    >>> dict(patch_heads(tiny, pairs).effect.sizes)
    {'example': 4, 'layer': 2, 'head': 2}
  """
  check_choice("method", method, METHODS)
  check_choice("site", site, HEAD_SITES)
  check_choice("position", position, POSITIONS)
  check_choice("ablation", ablation, ABLATIONS)
  check_choice("metric", metric, METRICS)
  check_pairs(model.config, pairs)
  began = time.perf_counter()
  question = Question(site, position, metric)
  with jax.default_matmul_precision(PRECISION):
    value = _ablation_value(model, pairs, ablation, site)
    batches = _batches(model, pairs, question, value, method, budget_bytes)
    sweep = _sweep(batches, question, value, progress)
    provenance = results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=batches.plan.examples * batches.plan.heads,
      method=method,
      site=site,
      position=position,
      ablation=ablation,
      metric=metric,
    )
  return results.dataset(
    np.moveaxis(sweep.effect, -1, 0),
    sweep.base,
    group=pairs.group,
    condition=pairs.condition,
    provenance=provenance,
  )


def _batches(model, pairs, question, value, method, budget_bytes) -> Batches:
  """A window of every prompt for the suffix sweep, else whole prompts."""
  whole = method == "general"
  unembeds_all = question.metric != "logit_difference"
  row = 2 * model.config.d_vocab if unembeds_all else 0
  start = None if whole else first_change(pairs, question, value)
  return Batches(
    model, pairs, budget_bytes, start=start, extra=lambda width: (row, 0)
  )


def _sweep(batches, question, value, show: bool) -> Sweep:
  """`effect[layer, head, example]` of one batch after the other."""
  config, n = batches.model.config, len(batches.pairs)
  sites = (config.n_layers, config.n_heads)
  effect, base = np.zeros((*sites, n)), np.zeros(n)
  of_part = _general if batches.start is None else _suffix
  with batches.bar(
    sites[0] * sites[1], "patch", f"patching {question.site}", show
  ) as bar:
    for part in batches:
      sweep = of_part(batches, part, question, value, bar.update)
      found = sweep.effect.reshape(*sites, -1)
      effect[..., part.place] = found[..., : part.n]
      base[part.place] = sweep.base[: part.n]
  return Sweep(effect, base)


def _suffix(batches, part, question, value, progress) -> Sweep:
  model, params = batches.model.model, batches.params
  shared, metric, base = suffix_inputs(
    model, question, params, part.batch, part.window, value
  )
  return sweep_layers(
      model, params, shared, metric, base,
      heads=batches.plan.heads, progress=progress,
  )  # fmt: skip


def _general(batches, part, question, value, progress) -> Sweep:
  model, params, batch = batches.model.model, batches.params, part.batch
  value, metric = general_inputs(model, question, params, batch, value)
  edit = Edit(head_gates(model.config, question.site), value)
  return general_sweep(
      model, params, batch.clean, Edits(**{question.site: (edit,)}), metric,
      answer=batch.answer_pos, key_valid=batch.key_valid,
      rows=batches.plan.heads, progress=progress,
  )  # fmt: skip


def _ablation_value(
  model: LoadedModel, pairs: PromptPairs, ablation: str, site: str
) -> jax.Array | None:
  """What replaces the site, `[layer, 1, 1, head, width]`; None: a run."""
  if ablation == "reference":
    return None
  config = model.config
  width = config.d_key if site in ("q", "k") else config.d_head
  shape = (config.n_layers, 1, 1, config.n_heads, width)
  total = np.zeros(shape, np.float64)
  if ablation == "mean":
    for index, place in chunks.slices(len(pairs), min(32, len(pairs))):
      batch = batch_of(pairs, index)
      batch.key_valid[place.stop - place.start :] = False
      total += site_sum(model.model, site, model.params, batch)
  dtype = jax.tree.leaves(model.params)[0].dtype
  return jnp.asarray(total / pairs.lengths.sum(), dtype)
