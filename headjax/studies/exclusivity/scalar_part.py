"""Is the scalar part of a head's map on its own space used? Section 6.

The scalar part s I of the map is removed from the value weights of some layers;
the control removes s R with a random orthogonal R, an edit of the same norm.

Source: paper A, section 6 and appendix C (scalar part).
"""

import time
from collections.abc import Sequence

import numpy as np
import xarray as xr

from headjax import results
from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions.answers import logit_differences
from headjax.interventions.own_block import (
  random_orthogonal,
  scalars,
  without_scalar_part,
)
from headjax.models.load import LoadedModel

LAYERS = (1, 2, 3, 4)
CONTROLS = 5


def measure(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  layers: Sequence[int] | None = None,
  controls: int = CONTROLS,
  seed: int = 0,
) -> xr.Dataset:
  """The logit difference without the scalar parts, and without controls.

  Args:
    model: from `load_model`, with frozen orthogonal writes and values that
      read the whole stream.
    pairs: prompts; the evaluation split.
    layers: edited together, counted from 0; None means 1 to 4, or as many of
      these as there are.
    controls: how many random edits.
    seed: of the first of these edits; the others count on.

  Returns:
    A dataset with `base[example]`, `removed[example]` and
    `control[example, draw]`, logit differences, and `scalar[layer, head]`, the
    scalar s of every head of the model.

  Raises:
    ValueError: a learned or a grouped model, values that read a block, layers
      that there are not, or no control.
  """
  began = time.perf_counter()
  if layers is None:
    layers = [layer for layer in LAYERS if layer < model.config.n_layers]
  check(
    controls >= 1, "controls", controls, "at least 1", "ask for one or more"
  )
  removed = without_scalar_part(model, layers)
  control = [
    without_scalar_part(model, layers, random_orthogonal(model, seed + i))
    for i in range(controls)
  ]
  about = {"units": results.LOGITS}
  return xr.Dataset(
    {
      "base": ("example", logit_differences(model, pairs), about),
      "removed": (
        "example", logit_differences(removed, pairs), about,
      ),
      "control": (
        ("example", "draw"),
        np.stack([logit_differences(one, pairs) for one in control], axis=1),
        about,
      ),
      "scalar": (("layer", "head"), scalars(model), {"units": "1"}),
    },
    attrs=results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=64,
      layers=[int(layer) for layer in layers],
      seed=seed,
    ),
  )  # fmt: skip


def summarise(found: xr.Dataset) -> dict[str, float | int]:
  """Whether the scalar part matters more than a random edit of its size.

  Args:
    found: from `measure`.

  Returns:
    Mean `drop` of the logit difference, `control_drop` over the random edits
    with its smallest and largest, and `worse`, 1 if the drop is the larger.
  """
  base, control = found.base.values, found.control.values
  drop = float((base - found.removed.values).mean())
  drops = (base[:, None] - control).mean(axis=0)
  return {
    "drop": drop,
    "control_drop": float(drops.mean()),
    "control_smallest": float(drops.min()),
    "control_largest": float(drops.max()),
    "worse": int(drop > drops.mean()),
  }


def by_layer(found: xr.Dataset) -> list[dict[str, float]]:
  """A row for each layer: its heads' mean scalar, and how many are negative."""
  return [
    {
      "layer": layer,
      "mean_scalar": float(s.mean()),
      "negative": int((s < 0).sum()),
    }
    for layer, s in enumerate(found.scalar.values)
  ]
