"""Do heads of different layers form lanes that their indices do not show?

Paper A's lane score knows heads by their index, which means nothing where
writes are learned or rotated. Here a correspondence between the layers is
estimated on the discovery split, by what heads write on average or by how their
effects vary together from prompt to prompt, and the lane score of the
relabelled heads is tested on the evaluation split.

What heads write does not depend on how much they matter. Effects that vary
together do, since heads that matter share what makes a prompt hard: lanes by
effects say that the important heads of the layers act together, not by which
way.
"""

import time

import numpy as np
import xarray as xr

from headjax import results
from headjax.data.pairs import PromptPairs
from headjax.interventions.writes import mean_writes
from headjax.models.load import LoadedModel
from headjax.statistics.correspondence import (
  cosines,
  effect_correlations,
  match_heads,
  relabel,
)
from headjax.statistics.lanes import lanes

HEADS = ("source_layer", "source_head", "layer", "head")


def measure(
  model: LoadedModel, pairs: PromptPairs, discovery: xr.Dataset
) -> xr.Dataset:
  """How alike any two heads are, and the lanes that they form.

  Args:
    model: from `load_model`.
    pairs: prompts of the discovery split.
    discovery: from `patch_heads` on the same prompts.

  Returns:
    A dataset with `similarity[by, source_layer, source_head, layer, head]` and
    `lane[by, layer, head]`, by "effects" and by "writes".

  Raises:
    ValueError: the model norms its attention output.
  """
  began = time.perf_counter()
  condition = discovery.get("condition")
  similarity = {
    "effects": effect_correlations(
      discovery.effect, None if condition is None else condition.values
    ),
    "writes": cosines(mean_writes(model, pairs)),
  }
  stacked = np.stack(list(similarity.values()))
  lane = np.stack([match_heads(table) for table in stacked])
  sizes = dict(zip(HEADS, stacked.shape[1:], strict=True))
  return xr.Dataset(
    {
      "similarity": (("by", *HEADS), stacked, {"units": "1"}),
      "lane": (("by", *HEADS[2:]), lane),
    },
    {"by": list(similarity)} | {d: np.arange(n) for d, n in sizes.items()},
    attrs=results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=len(pairs),
    ),
  )


def summarise(
  found: xr.Dataset, evaluation: xr.Dataset, *, draws: int = 5000
) -> list[dict]:
  """A row for each way to match heads: do effects line up in its lanes?

  Args:
    found: from `measure`, on the discovery split.
    evaluation: from `patch_heads`, on the evaluation split.
    draws: permutations within layers.

  Returns:
    `Lambda` of the relabelled heads with its permutation `p` and `chance`;
    `by_index`, that of the heads as they are; the mean `similarity` of matched
    heads of different layers, and of `all` such heads.
  """
  effects = evaluation.effect
  by_index = lanes(effects, draws=draws).value
  rows = []
  for by in found.by.values:
    one = found.sel(by=by)
    labels = one.lane.values
    test = lanes(relabel(effects.values, labels), draws=draws)
    matched, everything = _within_lanes(one.similarity.values, labels)
    rows.append(
      {
        "by": str(by),
        "Lambda": test.value,
        "p": test.p,
        "chance": test.chance,
        "by_index": by_index,
        "similarity": matched,
        "all": everything,
      }
    )
  return rows


def _within_lanes(similarity, labels) -> tuple[float, float]:
  """Means over heads of different layers, of one lane and of any."""
  n_layers = len(labels)
  layers = np.arange(n_layers)
  across = layers[:, None] != layers
  across = across[:, None, :, None]
  same = labels[:, :, None, None] == labels[None, None]
  return (
    float(similarity.mean(where=across & same)),
    float(similarity.mean(where=np.broadcast_to(across, same.shape))),
  )
