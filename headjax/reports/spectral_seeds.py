"""Is a circuit that of its own seed? A figure: each circuit in each model."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from headjax.reports.figures import FAINT, INK, STYLE
from headjax.reports.spectral_figures import HEAT

_PANELS = {
  "drop": "without the circuit",
  "random_mean": "without random heads (mean)",
}


def seed_matrix(rows: Sequence[Mapping[str, Any]], *, title: str) -> Figure:
  """The drop of right answers without each circuit, in each model.

  Args:
    rows: of `seeds.matrix`, for one set of circuits.
    title: of the figure.

  Returns:
    A figure for `save_figure`: the circuits beside matched random heads. What
    is framed is judged causal.
  """
  circuits, models = (
    list(dict.fromkeys(row[key] for row in rows))
    for key in ("circuit", "model")
  )
  wide, high = 0.75 * len(models), 0.5 * len(circuits)
  margin = 0.085 * max(map(len, circuits)) + 0.5
  size = margin + 2 * wide + 1.6, high + 1.15 + 0.055 * max(map(len, models))
  with matplotlib.rc_context(STYLE):
    figure = Figure(figsize=(max(size[0], 5.6), size[1]), facecolor="white")
    size = figure.get_size_inches()
    grid = figure.subplots(1, 2, sharey=True)
    figure.subplots_adjust(
      left=margin / size[0], right=1 - 0.95 / size[0],
      bottom=1 - (high + 1.0) / size[1], top=1 - 1.0 / size[1], wspace=0.12,
    )  # fmt: skip
    for ax, (column, label) in zip(grid, _PANELS.items(), strict=True):
      cells = np.full((len(circuits), len(models)), np.nan)
      for row in rows:
        place = circuits.index(row["circuit"]), models.index(row["model"])
        cells[place] = row[column]
        if column == "drop" and row["verdict"] == "causal":
          ax.add_patch(
            matplotlib.patches.Rectangle(
              (place[1], place[0]), 1, 1, fill=False, ec=INK, lw=1.4, zorder=3
            )
          )
      mesh = ax.pcolormesh(cells, cmap=HEAT, vmin=0, vmax=1)
      for (i, j), value in np.ndenumerate(cells):
        paint = "white" if value > 0.6 else INK
        ax.text(
          j + 0.5, i + 0.5, f"{value:z.2f}", ha="center", va="center",
          color=paint, size=8,
        )  # fmt: skip
      ax.set_title(label, loc="left", size=9)
      places = np.arange(len(models)) + 0.5
      ax.set_xticks(places, models, rotation=40, ha="right")
      ax.set_yticks(np.arange(len(circuits)) + 0.5, circuits)
      ax.spines[:].set_visible(False)
      ax.tick_params(length=0)
    grid[0].invert_yaxis()
    bar = figure.add_axes(
      (1 - 0.8 / size[0], 1 - (high + 1.0) / size[1], 0.12 / size[0],
       high / size[1])
    )  # fmt: skip
    figure.colorbar(mesh, cax=bar).outline.set_visible(False)
    bar.set_ylabel("drop of top 1")
    left = 0.12 / size[0]
    figure.text(left, 1 - 0.3 / size[1], title, size=12, weight="bold")
    about = "rows: whose circuit; columns: in which model; framed: causal"
    figure.text(left, 1 - 0.52 / size[1], about, color=FAINT)
  return figure
