"""Which figures does the study have? All that its results suffice for.

Every figure is drawn from rows that are also written as CSV, or from saved
results; none needs a model.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from headjax.reports.designs import ordered
from headjax.reports.exclusivity_bars import (
  design_bars,
  half_figure,
  loss_figure,
)
from headjax.reports.exclusivity_curves import training_curves
from headjax.reports.exclusivity_maps import effect_grid
from headjax.reports.leakage_figure import leakage_figure
from headjax.reports.path_figures import clamp_figure, path_figure
from headjax.studies.exclusivity.store import Store

LEAKING = ("learned", "write-common-axis")
Tables = Mapping[str, Sequence[Mapping[str, Any]]]


def figures(store: Store, tables: Tables) -> dict[str, Figure]:
  """Every figure for which there are rows or results.

  Args:
    store: of the results.
    tables: of `headjax.studies.exclusivity.tables`.

  Returns:
    File name without suffix -> figure.
  """
  found = {}
  if "concentration" in tables:
    found |= _concentration(tables)
  if "lanes" in tables:
    found |= _lanes(tables)
  if "curves" in tables:
    found["lanes-in-training"] = training_curves(
      tables["curves"],
      {"accuracy": "accuracy", "Lambda": "lane score \u039b"},
      title="Tasks are learned, and lanes form",
      chance=_chance(tables["curves"], "Lambda"),
    )
  if "leakage-pairs" in tables:
    found["leakage"] = leakage_figure(
      _shown(store.all("leakage")), _evaluation(tables["leakage-pairs"])
    )
  if "path-shares" in tables:
    found["paths"] = path_figure(_evaluation(tables["path-shares"]))
    found["clamps"] = clamp_figure(_evaluation(tables["part-clamps"]))
  if "alignment-curves" in tables:
    found["alignment-in-training"] = training_curves(
      [row | {"task": "layers from 1"} for row in tables["alignment-curves"]],
      {
        "own_best": "heads that read\ntheir own best",
        "rho_self": "\u03c1$_{self}$",
        "idempotence": "scaled idempotence",
      },
      title="Heads come to read what they write",
      chance=_chance(tables["alignment-curves"], "own_best"),
    )
  return found


def _concentration(tables: Tables) -> dict[str, Figure]:
  rows = tables["concentration"]
  found = {
    "concentration": design_bars(
      rows,
      "neff",
      title="Over how many heads does an effect spread?",
      about="evaluation split; a point is a run, the line the 95% interval"
      " over seeds",
      label="N$_{eff}$ (heads)",
    ),
    "index-concentration": design_bars(
      rows,
      "n_index",
      title="Over how many head indices does an effect spread?",
      about="evaluation split; a point is a run, the line the 95% interval"
      " over seeds",
      label="N$_{index}$ (indices)",
    ),
  }
  losses = [
    row
    for row in tables.get("performance", ())
    if row["validation_loss"] == row["validation_loss"]
  ]
  if losses:
    found["loss-concentration"] = loss_figure(rows, losses)
  return found


def _lanes(tables: Tables) -> dict[str, Figure]:
  rows = tables["lanes"]
  chances = {row["chance"] for row in rows}
  found = {
    "heat-maps": effect_grid(tables["heads"], rows),
    "lane-scores": design_bars(
      rows,
      "Lambda",
      title="Do the heads that matter share an index?",
      about="discovery split; a point is a run, the line the 95% interval"
      " over seeds",
      label="lane score \u039b",
      chance=chances.pop() if len(chances) == 1 else None,
    ),
  }
  if "halves" in tables:
    found["half-shared"] = half_figure(
      tables["halves"], chance=tables["halves"][0]["chance"]
    )
  return found


def _shown(leakages):
  """Those of the paper's figure; of other designs, the first four."""
  designs = ordered(data.attrs["design"] for data in leakages)
  chosen = [d for d in designs if d.partition("@")[0] in LEAKING] or designs
  return [d for d in leakages if d.attrs["design"] in chosen[:4]]


def _evaluation(rows):
  """Those whose top heads the evaluation split chose, as in the paper."""
  return [row for row in rows if row["chosen_on"] == "evaluation"]


def _chance(rows, quantity: str) -> dict[str, float]:
  """What chance gives, where all runs have as many heads."""
  chances = {row["chance"] for row in rows}
  return {quantity: chances.pop()} if len(chances) == 1 else {}
