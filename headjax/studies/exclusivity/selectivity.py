"""What do one task's heads and lanes do to the other tasks?

A head that matters for a task may matter for all. The top heads of every task
are patched together on the prompts of every task, and so is every lane; what
a set does to its own task, less what it does to the others, is its
selectivity.
"""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from headjax.data.pairs import PromptPairs
from headjax.interventions.joint import lane_sets, patch_sets
from headjax.models.load import LoadedModel
from headjax.statistics import mean_effect
from headjax.statistics.top_pairs import top_heads

TOP = 3


def measure(
  model: LoadedModel,
  pairs: PromptPairs,
  effects: Mapping[str, xr.DataArray],
  *,
  progress: bool = False,
) -> xr.Dataset:
  """Patches every lane, and the top heads of every task, on one task.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts of the task that is measured.
    effects: task -> `[example, layer, head]` of its discovery split, which
      choose its heads and its lane.
    progress: whether to show a progress bar.

  Returns:
    The dataset of `patch_sets` with the sets `lane 0`, ... and `top TASK`;
    along `source` (tasks) also `lane_of`, the index of the task's own lane,
    that with the largest sum of positive effects.
  """
  sets = lane_sets(model.config)
  for task, effect in effects.items():
    sets[f"top {task}"] = top_heads(effect, TOP)
  data = patch_sets(model, pairs, sets, progress=progress)
  own = [
    int(np.maximum(mean_effect(e.values), 0).sum(0).argmax())
    for e in effects.values()
  ]
  return data.assign(lane_of=("source", own)).assign_coords(
    source=list(effects)
  )


def lanes(data: xr.Dataset, single: xr.Dataset) -> list[dict[str, float]]:
  """One row a lane: patched whole, against its heads one at a time.

  Args:
    data: of `measure`.
    single: of `patch_heads` on the same prompts.

  Returns:
    Rows with the lane's index, its `joint` effect and the `sum` of its heads'
    effects, in logits, and the joint effect as a share of the clean `margin`.
  """
  margin = float(data.base.mean())
  sums = mean_effect(single.effect.values).sum(0)
  joint = [
    float(data.effect.sel(set=f"lane {head}").mean())
    for head in range(len(sums))
  ]
  return [
    {
      "lane": head,
      "joint": joint[head],
      "sum": float(sums[head]),
      "margin_share": joint[head] / margin,
    }
    for head in range(len(sums))
  ]


def summarise(data: xr.Dataset) -> list[dict[str, float | str]]:
  """One row a source task and kind of set: its effect on the measured task.

  Args:
    data: of `measure`, on one task.

  Returns:
    Rows with `source`, `kind` ("heads" or "lane"), `effect` in logits and
    `margin_share`, the effect over the mean clean logit difference.
  """
  margin = float(data.base.mean())
  rows = []
  for source, lane in zip(
    data.source.values.tolist(), data.lane_of.values.tolist(), strict=True
  ):
    sets = {"heads": f"top {source}", "lane": f"lane {lane}"}
    for kind, name in sets.items():
      effect = float(data.effect.sel(set=name).mean())
      rows.append(
        {
          "source": source,
          "kind": kind,
          "set": name,
          "effect": effect,
          "margin_share": effect / margin,
        }
      )
  return rows


def selectivity(rows: list[dict]) -> list[dict[str, float | str]]:
  """One row a task and kind: what its set does to it and to the others.

  Args:
    rows: of `summarise` for every task of one model, each with its `task`.

  Returns:
    Rows with `source`, `kind`, the `own` share of the margin, the mean share
    of the `others`, and their difference, the `selectivity`.
  """
  found = []
  for source, kind in dict.fromkeys((r["source"], r["kind"]) for r in rows):
    mine = [r for r in rows if (r["source"], r["kind"]) == (source, kind)]
    own = [r["margin_share"] for r in mine if r["task"] == source]
    others = [r["margin_share"] for r in mine if r["task"] != source]
    if own and others:
      found.append(
        {
          "source": source,
          "kind": kind,
          "own": own[0],
          "others": float(np.mean(others)),
          "selectivity": own[0] - float(np.mean(others)),
        }
      )
  return found
