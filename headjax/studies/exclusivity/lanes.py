"""Do the heads that matter share an index across layers? Section 5.3.

From what `patch_heads` saved: the lane score and its test, the top heads and
their confirmation on another split, the effects for heat maps, the score
within the two halves of a half-shared design, and the curves of a training
run. Lambda is always that of the discovery split.

Source: paper A, sections 4, 5.3 and 7, appendix C (splits).
"""

import json

import numpy as np
import xarray as xr

from headjax.interventions.series import at_step
from headjax.statistics import (
  confirm_heads,
  half_lanes,
  lanes,
  mean_effect,
  neff,
)
from headjax.statistics.top_pairs import agreement, top_heads

TOP = 3


def summarise(
  discovery: xr.Dataset,
  evaluation: xr.Dataset,
  *,
  n_tasks: int,
  draws: int = 5000,
) -> dict[str, float | str]:
  """The lane score of a model on a task, and its top heads.

  Args:
    discovery: effects that the score and the heads are chosen on.
    evaluation: effects of the same heads on the evaluation split.
    n_tasks: measured on this model; p is corrected for as many.
    draws: permutations within layers.

  Returns:
    `Lambda` with `p`, `p_corrected`, `chance` and `null_median`; the top
    heads by discovery effect, how many of them are `confirmed` (a positive
    evaluation effect), in how many the most frequent index occurs, and how
    many the evaluation split would have chosen too.
  """
  found = lanes(discovery.effect, draws=draws, n_tasks=n_tasks)
  top = confirm_heads(discovery.effect, evaluation.effect, count=TOP)
  indices = np.array([head.head for head in top])
  return {
    "Lambda": found.value,
    "p": found.p,
    "p_corrected": found.p_corrected,
    "chance": found.chance,
    "null_median": found.null_median,
    "top_heads": " ".join(f"L{head.layer}H{head.head}" for head in top),
    "confirmed": sum(head.confirmed for head in top),
    "agreement": agreement(
      *(top_heads(d.effect, TOP) for d in (discovery, evaluation))
    ),
    "same_index": int(np.bincount(indices).max()),
  }


def heads(discovery: xr.Dataset, evaluation: xr.Dataset) -> list[dict]:
  """One row a head: its mean effects on both splits, in logits."""
  first, second = (
    mean_effect(d.effect.values) for d in (discovery, evaluation)
  )
  return [
    {
      "layer": layer,
      "head": head,
      "discovery": float(first[layer, head]),
      "evaluation": float(second[layer, head]),
    }
    for layer, head in np.ndindex(first.shape)
  ]


def shared_indices(data: xr.Dataset) -> np.ndarray:
  """`[head]` bool: the indices that a half-shared design would share.

  Its even heads write one space in all layers, its odd ones another in each.
  Any other design is measured by the same halves, for comparison.
  """
  return np.arange(data.sizes["head"]) % 2 == 0


def is_half_shared(data: xr.Dataset) -> bool:
  """Whether only half of the indices share their write space across layers."""
  config = json.loads(data.attrs["model_config"])
  return config["write"]["kind"] == "half_shared"


def halves(discovery: xr.Dataset, *, draws: int = 5000) -> dict[str, float]:
  """Lambda within the shared and within the rotating indices.

  Args:
    discovery: effects on the discovery split.
    draws: permutations within the layers of each half.

  Returns:
    `shared`, `rotating`, `difference`, its permutation `p`, and `chance`, that
    of a half.
  """
  found = half_lanes(discovery.effect, shared_indices(discovery), draws=draws)
  return {
    "half_shared": int(is_half_shared(discovery)),
    "shared": found.shared,
    "rotating": found.rotating,
    "difference": found.difference,
    "p": found.p,
    "chance": found.chance_shared,
  }


def curve(series: xr.Dataset, *, draws: int = 5000) -> list[dict[str, float]]:
  """One row a checkpoint: accuracy, margin, the lane score and Neff."""
  return [
    {"step": int(step)} | _point(at_step(series, step), draws)
    for step in series.step.values
  ]


def _point(data: xr.Dataset, draws: int) -> dict[str, float]:
  effects, base = data.effect.values, data.base.values
  found = lanes(effects, draws=draws)
  return {
    "accuracy": float((base > 0).mean()),
    "margin": float(base.mean()),
    "Lambda": found.value,
    "p": found.p,
    "chance": found.chance,
    "neff": float(neff(mean_effect(effects))),
  }
