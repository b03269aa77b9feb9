"""What do several heads do together? Sets of heads, patched at once.

The effects of heads that are patched one at a time need not add up: heads
compensate for each other, or do the same thing twice. `patch_sets` replaces
all heads of a set together, one set after the other, in one compiled program.
"""

import time
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from headjax import results
from headjax.checks import check, check_choice
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks
from headjax.interventions.batches import Batches
from headjax.interventions.prepared import labels
from headjax.interventions.questions import (
  Question,
  check_pairs,
  general_inputs,
)
from headjax.interventions.record import HEAD_SITES
from headjax.interventions.sweep import PRECISION, Sweep, general_sweep
from headjax.models.config import ModelConfig
from headjax.models.load import LoadedModel
from headjax.models.sites import Edit, Edits

Head = tuple[int, int]


def lane_sets(config: ModelConfig) -> dict[str, list[Head]]:
  """Every lane: the heads of one index in all layers, under `lane 0`, ..."""
  return {
    f"lane {head}": [(layer, head) for layer in range(config.n_layers)]
    for head in range(config.n_heads)
  }


def patch_sets(
  model: LoadedModel,
  pairs: PromptPairs,
  sets: Mapping[str, Sequence[Head]],
  *,
  site: str = "z",
  budget_bytes: int = 2 * chunks.GIB,
  progress: bool = False,
) -> xr.Dataset:
  """Replaces all heads of a set by their values on the reference prompt.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts.
    sets: name -> heads (layer, head) that are patched together; an empty set
      patches nothing.
    site: "z", "q", "k" or "v".
    budget_bytes: memory for the sweep, per device, beside the parameters.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `effect[example, set]`, the drop of the logit difference,
    clean minus patched, in logits (nats), `base[example]`, and
    `members[set, layer, head]`, which head is in which set.

  Raises:
    ValueError: no set, a head that the model lacks, an unknown site, prompts
      that the model cannot run, or a budget that not one example fits.
  """
  check_choice("site", site, HEAD_SITES)
  check_pairs(model.config, pairs)
  members = _members(model.config, sets)
  began = time.perf_counter()
  batches = Batches(model, pairs, budget_bytes)
  with jax.default_matmul_precision(PRECISION):
    sweep = _sweep(batches, members, site, progress)
    provenance = results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=batches.plan.examples * batches.plan.heads,
      method="general",
      site=site,
      position="all",
      ablation="reference",
      metric=results.LOGIT_DIFFERENCE,
    )
  return _labelled(sweep, members, list(sets), pairs, provenance)


def _sweep(batches: Batches, members, site: str, show: bool) -> Sweep:
  """`effect[set, example]` of one batch after the other."""
  n_sets, n, rows = len(members), len(batches.pairs), batches.plan.heads
  # Filled up to whole calls, so that any number of sets is one program.
  filled = members[np.minimum(np.arange(-(-n_sets // rows) * rows), n_sets - 1)]
  gates = jnp.asarray(filled[:, :, None, None, :, None], jnp.float32)
  effect, base = np.zeros((n_sets, n)), np.zeros(n)
  with batches.bar(len(gates), "set", f"patching sets of {site}", show) as bar:
    for part in batches:
      sweep = _of_part(batches, part, gates, site, bar.update)
      effect[:, part.place] = sweep.effect[:n_sets, : part.n]
      base[part.place] = sweep.base[: part.n]
  return Sweep(effect, base)


def _of_part(batches, part, gates, site, progress) -> Sweep:
  model, params, batch = batches.model.model, batches.params, part.batch
  question = Question(site, "all", results.LOGIT_DIFFERENCE)
  value, metric = general_inputs(model, question, params, batch, None)
  edits = Edits(**{site: (Edit(gates, value),)})
  return general_sweep(
      model, params, batch.clean, edits, metric,
      answer=batch.answer_pos, key_valid=batch.key_valid,
      rows=batches.plan.heads, progress=progress,
  )  # fmt: skip


def _members(
  config: ModelConfig, sets: Mapping[str, Sequence[Head]]
) -> np.ndarray:
  """`[set, layer, head]` bool."""
  check(len(sets) > 0, "sets", "none", "at least one", "name some heads")
  members = np.zeros((len(sets), config.n_layers, config.n_heads), bool)
  for row, (name, heads) in zip(members, sets.items(), strict=True):
    for layer, head in heads:
      there = 0 <= layer < config.n_layers and 0 <= head < config.n_heads
      check(
        there,
        f"set {name!r}",
        f"head ({layer}, {head})",
        f"layers below {config.n_layers}, heads below {config.n_heads}",
        "choose heads of this model",
      )
      row[layer, head] = True
  return members


def _labelled(sweep, members, names, pairs, provenance) -> xr.Dataset:
  """The effects with their labels."""
  about = {"long_name": "logit difference", "units": results.LOGITS}
  drop = about | {"long_name": "logit difference, clean minus patched"}
  return xr.Dataset(
    {
      "effect": (("example", "set"), sweep.effect.T, drop),
      "base": ("example", sweep.base, about),
      "members": (("set", "layer", "head"), members.astype(np.int8)),
    },
    {"set": names} | labels(pairs),
    attrs=provenance,
  )
