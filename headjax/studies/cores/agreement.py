"""Does one direction decide whether a verb is singular or plural? Experiment 3.

Prompts end where the verb follows, with a noun of the other number between the
subject and the verb. At the last token of every layer the core of the margin
between plural and singular verbs is one direction. Around the mean of other
prompts it is kept alone, removed and flipped; how well the margin then tells
plural subjects from singular ones is the area under the curve (AUC), 1 where it
always does, 0 where it is reversed. Controls are a random direction, treated
alike, and a move along it by the distance of the flip, since a projection moves
a stream little along a direction on which it varies little.

Source: paper D, subject-verb agreement, with the prompts of the `sva` task:
  those in which subject and attractor differ.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from headjax import results
from headjax.data.pairs import PromptPairs
from headjax.models.load import LoadedModel
from headjax.statistics.discrimination import auc
from headjax.studies.cores.number_axis import (
  EXAMPLES,
  Axis,
  is_plural,
  last_streams,
  margins,
  margins_after,
  random_axis,
)

KINDS = ("keep", "remove", "flip")
AS_FAR = "random as far"


def measure(
  model: LoadedModel,
  found: Sequence[Axis],
  test: PromptPairs,
  *,
  seed: int = 0,
) -> xr.Dataset:
  """The margins of other prompts, under every edit of every layer's axis.

  Args:
    model: with a tokenizer.
    found: of `axes`, one a layer.
    test: prompts with attractors that the axes were not found on.
    seed: of the random directions.

  Returns:
    A dataset with `margin[layer, edit, example]` in nats, where edits are
    those of KINDS, the same of a random direction, and AS_FAR, a move along
    that direction by the distance of the flip; `base[example]` unedited,
    `coordinate[layer, example]` on the axis, in units of the stream,
    `size[layer]`, the axis' singular value, and `plural[example]`.
  """
  began = time.perf_counter()
  edits = [*KINDS, *(f"random {kind}" for kind in KINDS), AS_FAR]
  streams = last_streams(model, test)

  def edited(axis):
    other = random_axis(axis, seed + axis.layer)
    rows = [
      one.projected(streams, kind) for one in (axis, other) for kind in KINDS
    ]
    return [*rows, axis.moved_as_far(streams, other)]

  rows = np.stack([edited(axis) for axis in found])
  margin_nats = margins_after(model, test, rows)
  coordinate = np.stack([axis.coordinates(streams) for axis in found])
  nats = {"long_name": "plural less singular", "units": "nats"}
  base = margins(model, test)
  return xr.Dataset(
    {
      "margin": (("layer", "edit", "example"), margin_nats, nats),
      "base": ("example", base, nats),
      "coordinate": (("layer", "example"), coordinate, {"units": "stream"}),
      "size": ("layer", [axis.size for axis in found], {"units": "1"}),
    },
    {
      "layer": [axis.layer for axis in found],
      "edit": edits,
      "plural": ("example", is_plural(test)),
    },
    attrs=results.provenance(
      model=model, pairs=test, wall_s=time.perf_counter() - began,
      chunk=EXAMPLES, method="agreement core", position="last", seed=seed,
    ),
  )  # fmt: skip


def layer_rows(found: xr.Dataset) -> list[dict[str, Any]]:
  """One row a layer: the AUC unedited, and for each edit of the axis.

  Args:
    found: of `measure`.
  """
  plural = found["plural"].values.astype(bool)
  base = auc(found["base"].values, plural)
  rows = []
  for layer in found["layer"].values.tolist():
    here = found.sel(layer=layer)
    row = {"layer": layer, "base": base}
    for edit in found["edit"].values.tolist():
      row[edit] = auc(here["margin"].sel(edit=edit).values, plural)
    row["coordinate"] = auc(here["coordinate"].values, plural)
    rows.append(row | {"size": float(here["size"])})
  return rows


def flip_aucs(
  model: LoadedModel, found: Sequence[Axis], pairs: PromptPairs
) -> list[float]:
  """The AUC under each axis' flip, by which a layer is chosen.

  Args:
    model: with a tokenizer.
    found: of `axes`, one a layer.
    pairs: prompts with attractors; other ones than those on which the chosen
      layer is told, since the best of many is the best by chance as well.
  """
  streams = last_streams(model, pairs)
  rows = np.stack([[axis.projected(streams, "flip")] for axis in found])
  plural = is_plural(pairs)
  return [auc(nats, plural) for nats in margins_after(model, pairs, rows)[:, 0]]


def knob_fit(coordinates: np.ndarray, margin_nats: np.ndarray) -> dict:
  """The line margin = a z + b, and the share of variance that it explains."""
  a, b = np.polyfit(coordinates, margin_nats, 1)
  r = np.corrcoef(coordinates, margin_nats)[0, 1]
  return {"slope": float(a), "offset": float(b), "r2": float(r**2)}
