"""Do few coordinates carry a layer's effect, and of which basis? Appendix B.2.

In the layer of the task's most important head, each coordinate is replaced
alone: of the attention output, of the heads' outputs before W_O, and of these
after one random rotation within each head, which changes the basis and nothing
else.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions.directions import patch_directions, rotation
from headjax.models.load import LoadedModel
from headjax.statistics.shares import top_share
from headjax.statistics.top_pairs import top_heads

KINDS = ("attn_out", "z", "rotated")
SEED = 0  # of the rotation


def measure(
  model: LoadedModel,
  pairs: PromptPairs,
  effects,
  *,
  progress: bool = False,
) -> xr.Dataset:
  """Replaces each coordinate of the most important head's layer.

  Args:
    model: from `load_model`; causal.
    pairs: prompts of one split; validation ranks, evaluation counts.
    effects: `[example, layer, head]` of this model and task, which choose the
      layer; the same for both splits.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `attn_out[example, coordinate]`, `z[example, internal]` and
    `rotated[example, internal]`, effects in logits, clean minus patched;
    `base[example]`; and the layer as attribute `patched_layer`.

  Raises:
    ValueError: the model is not causal, or cannot run the pairs.
  """
  config = model.config
  layer = top_heads(effects, 1)[0].layer
  turned = rotation(config.n_heads, config.d_head, SEED)
  asked = {"attn_out": {}, "z": {}, "rotated": {"basis": turned}}
  found = {
    kind: patch_directions(
      model, pairs, layer, site="attn_out" if kind == "attn_out" else "z",
      progress=progress, **options,
    )
    for kind, options in asked.items()
  }  # fmt: skip
  whole = found["attn_out"]
  arrays = {
    kind: one.effect.rename(direction=_dimension(kind))
    for kind, one in found.items()
  }
  attributes = {k: v for k, v in whole.attrs.items() if k != "site"}
  wall = sum(one.attrs["wall_s"] for one in found.values())
  return xr.Dataset(
    arrays | {"base": whole.base},
    attrs=attributes | {"wall_s": wall, "rotation_seed": SEED},
  )


def summarise(
  validation: xr.Dataset,
  evaluation: xr.Dataset,
  *,
  count: int = 10,
  draws: int = 1000,
) -> list[dict]:
  """A row for each kind of coordinates: the share of the best.

  Args:
    validation: from `measure`, which ranks the coordinates.
    evaluation: from `measure`, which their share is computed on.
    count: coordinates chosen.
    draws: random sets of as many.

  Returns:
    The layer, `share`, and of the random sets the median, the largest share
    and the p of the chosen ones.

  Raises:
    ValueError: the two are of different layers.
  """
  layers = [d.attrs["patched_layer"] for d in (validation, evaluation)]
  check(
    layers[0] == layers[1],
    "evaluation",
    f"layer {layers[1]}",
    f"layer {layers[0]} as in validation",
    "choose the layer by the same effects for both",
  )
  rows = []
  for kind in KINDS:
    tables = (
      d[kind].transpose("example", ...).values for d in (validation, evaluation)
    )
    found = top_share(*tables, count=count, draws=draws)
    rows.append(
      {
        "kind": kind,
        "layer": int(layers[0]),
        "share": found.value,
        "random_median": found.random_median,
        "random_largest": found.random_largest,
        "p": found.p,
      }
    )
  return rows


def ranges(rows: Sequence[dict]) -> list[dict]:
  """The range of shares over models, for each task and kind.

  Args:
    rows: of `summarise`, each with its `task` added.
  """
  found = []
  for task, kind in dict.fromkeys((row["task"], row["kind"]) for row in rows):
    shares = [
      row["share"] for row in rows if (row["task"], row["kind"]) == (task, kind)
    ]
    found.append(
      {
        "task": task,
        "kind": kind,
        "models": len(shares),
        "smallest": float(np.min(shares)),
        "largest": float(np.max(shares)),
      }
    )
  return found


def _dimension(kind: str) -> str:
  return "coordinate" if kind == "attn_out" else "internal"
