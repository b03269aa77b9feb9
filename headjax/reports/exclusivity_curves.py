"""When in training do lanes form? Accuracy and lane score over the steps."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from headjax.reports.designs import (
  by_design,
  colour,
  dashes,
  legend_width,
  tasks_of,
)
from headjax.reports.figures import FAINT, INK, STYLE

Rows = Sequence[Mapping[str, Any]]


def training_curves(
  rows: Rows,
  quantities: Mapping[str, str],
  *,
  title: str,
  chance: Mapping[str, float],
) -> Figure:
  """Numbers of the checkpoints of runs: a column a task, a row a quantity.

  Args:
    rows: with `run`, `design`, `task`, `step` and the quantities.
    quantities: column -> label of its axis.
    title: of the figure.
    chance: column -> what chance gives, where there is such a number.

  Returns:
    A figure for `save_figure`; thin lines are runs, thick ones their means.
  """
  tasks = tasks_of(rows)
  with matplotlib.rc_context(STYLE):
    styles = dashes(row["design"] for row in rows)
    beside = legend_width(styles)
    size = (2.75 * len(tasks) + 0.85 + beside, 1.75 * len(quantities) + 1.35)
    figure = Figure(figsize=size)
    grid = figure.subplots(
      len(quantities), len(tasks), sharex=True, sharey="row", squeeze=False
    )
    figure.subplots_adjust(
      left=0.85 / size[0],
      right=1 - beside / size[0],
      bottom=0.5 / size[1],
      top=1 - 0.85 / size[1],
      wspace=0.1,
      hspace=0.16,
    )
    handles = {}
    for line, (name, label) in zip(grid, quantities.items(), strict=True):
      for ax, task in zip(line, tasks, strict=True):
        for design, mine in by_design(rows, task=task).items():
          paint, style = colour(design), styles[design]
          handles[design] = _draw(ax, mine, name, paint, style)
        if name in chance:
          ax.axhline(chance[name], color=INK, lw=0.8, ls=(0, (4, 3)))
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color=FAINT, alpha=0.2, lw=0.6)
      line[0].set_ylabel(label)
    for ax, task in zip(grid[0], tasks, strict=True):
      ax.set_title(task, loc="left", weight="bold")
    _label_steps(grid[-1], sorted({row["step"] for row in rows}))
    figure.legend(
      handles.values(), handles, loc="center right", frameon=False,
      handlelength=2.6,
    )  # fmt: skip
    figure.text(
      0.12 / size[0], 1 - 0.3 / size[1], title, size=12, weight="bold"
    )
    about = "thin: runs; thick: their mean; dashed: chance"
    figure.text(0.12 / size[0], 1 - 0.52 / size[1], about, color=FAINT)
  return figure


def _draw(ax, rows: Rows, name: str, paint: str, style):
  """All runs of a design, and their mean where all have a value."""
  runs: dict[str, dict[int, float]] = {}
  for row in rows:
    runs.setdefault(row["run"], {})[row["step"]] = row[name]
  steps = sorted({step for run in runs.values() for step in run})
  places = np.arange(len(steps))
  table = np.array([[r.get(s, np.nan) for s in steps] for r in runs.values()])
  for values in table:
    ax.plot(places, values, color=paint, lw=0.6, alpha=0.35)
  valid = ~np.isnan(table)
  count = np.maximum(valid.sum(0), 1)
  mean = np.where(
    valid.any(0), np.where(valid, table, 0).sum(0) / count, np.nan
  )
  [line] = ax.plot(places, mean, color=paint, ls=style, lw=1.9)
  return line


def _label_steps(axes, steps: list[int]) -> None:
  """Checkpoints stand at equal distances: they are spaced by factors."""
  for ax in axes:
    ax.set_xticks(range(len(steps)), [f"{step:,}" for step in steps])
    ax.set_xlabel("training steps")
