"""What does each attention head do on these prompts? All of them, at once.

`patch_heads` replaces every head's output (or query, key, value), one head at
a time, by its value on the reference prompt, by zero or by its mean, and
reports how much the metric drops, per example.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from headjax import results
from headjax.checks import check_choice
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks, suffix
from headjax.interventions.edits import head_gates
from headjax.interventions.questions import (
  METRICS,
  POSITIONS,
  Batch,
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
    job = _Job(model, pairs, question, value, method, budget_bytes)
    sweep = job.run(progress)
    provenance = results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=job.plan.examples * job.plan.heads,
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


class _Job:
  """One sweep over all chunks: the plan, the placement and the loop."""

  def __init__(self, model, pairs, question, value, method, budget_bytes):
    self.model, self.pairs, self.method = model.model, pairs, method
    self.question, self.value = question, value
    self.start = first_change(pairs, question, value)
    self.n_devices = min(jax.local_device_count(), len(pairs))
    self.params = chunks.replicate(model.params, self.n_devices)
    self.width = self.window(slice(None)).width
    n_pos = pairs.clean.shape[1]
    unembeds_all = question.metric != "logit_difference"
    self.plan = chunks.plan(
      model.config,
      n_examples=len(pairs),
      n_pos=n_pos,
      width=self.width if method == "suffix" else n_pos,
      itemsize=jax.tree.leaves(model.params)[0].dtype.itemsize,
      budget_bytes=budget_bytes,
      n_devices=self.n_devices,
      row_extra=2 * model.config.d_vocab if unembeds_all else 0,
    )

  def window(self, index, width: int | None = None) -> suffix.Window:
    return suffix.make_window(
      self.model.config,
      self.start[index],
      self.pairs.answer_pos[index],
      self.pairs.clean.shape[1],
      width,
    )

  def run(self, show: bool) -> Sweep:
    sites = (self.model.config.n_layers, self.model.config.n_heads)
    effect = np.zeros((*sites, len(self.pairs)))
    base = np.zeros(len(self.pairs))
    parts = list(chunks.slices(len(self.pairs), self.plan.examples))
    bar = tqdm(
      total=len(parts) * sites[0] * sites[1],
      unit="patch",
      unit_scale=self.plan.examples,
      desc=f"{self.pairs.name}: patching {self.question.site}",
      disable=not show,
    )
    with bar:
      for index, place in parts:
        n = place.stop - place.start
        sweep = self.chunk(index, bar.update)
        effect[..., place] = sweep.effect.reshape(*sites, -1)[..., :n]
        base[place] = sweep.base[:n]
    return Sweep(effect, base)

  def chunk(self, index: np.ndarray, progress: Callable[[int], Any]) -> Sweep:
    batch = chunks.spread(batch_of(self.pairs, index), self.n_devices)
    if self.method == "general":
      return self.general(batch, progress)
    window = chunks.spread(self.window(index, self.width), self.n_devices)
    shared, metric, base = suffix_inputs(
      self.model, self.question, self.params, batch, window, self.value
    )
    return sweep_layers(
        self.model, self.params, shared, metric, base,
        heads=self.plan.heads, progress=progress,
    )  # fmt: skip

  def general(self, batch: Batch, progress: Callable[[int], Any]) -> Sweep:
    site = self.question.site
    value, metric = general_inputs(
      self.model, self.question, self.params, batch, self.value
    )
    edit = Edit(head_gates(self.model.config, site), value)
    return general_sweep(
        self.model, self.params, batch.clean, Edits(**{site: (edit,)}), metric,
        answer=batch.answer_pos, key_valid=batch.key_valid,
        rows=self.plan.heads, progress=progress,
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
