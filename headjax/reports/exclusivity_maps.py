"""Where do heads matter, design by design? Heat maps in a grid.

Source: paper A, figure 5.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headjax.reports.colours import (
  COLOURS,
  LINEAR_WIDTH,
  asinh_colour,
  draw_colorbar,
)
from headjax.reports.designs import by_design, tasks_of
from headjax.reports.figures import FAINT, INK, STYLE

Rows = Sequence[Mapping[str, Any]]
TOP = 3


def effect_grid(heads: Rows, lanes: Rows) -> Figure:
  """Mean effects of all heads: a row a design, of its first run, by task.

  Args:
    heads: rows of that table: `layer`, `head`, `discovery` of every run.
    lanes: rows of that table, for Lambda and p under every map.

  Returns:
    A figure for `save_figure`. Layer 0 is at the bottom; the three largest
    effects are circled.
  """
  tasks = tasks_of(heads)
  first = {
    design: min(rows, key=lambda row: (row["seed"], row["run"]))["run"]
    for design, rows in by_design(heads).items()
  }
  score = {(row["run"], row["task"]): row for row in lanes}
  tables = {
    (run, task): _table(heads, run, task)
    for run in first.values()
    for task in tasks
  }
  limit = max(LINEAR_WIDTH, *(np.abs(t).max() for t in tables.values()))
  with matplotlib.rc_context(STYLE):
    figure, grid, bar = _layout(list(first), tasks, tables)
    for line, (design, run) in zip(grid, first.items(), strict=True):
      for ax, task in zip(line, tasks, strict=True):
        mesh = _draw(ax, tables[run, task], limit)
        _caption(ax, score.get((run, task)))
      line[0].set_ylabel(f"{design}\n\nlayer")
    for ax, task in zip(grid[0], tasks, strict=True):
      ax.set_title(task, loc="left", weight="bold", pad=16)
    for ax in grid[-1]:
      ax.set_xlabel("head", labelpad=1)
    draw_colorbar(figure, mesh, bar, limit)
  return figure


def _table(heads: Rows, run: str, task: str) -> np.ndarray:
  """`[layer, head]` effects on the discovery split."""
  mine = [r for r in heads if (r["run"], r["task"]) == (run, task)]
  shape = tuple(1 + max(row[n] for row in mine) for n in ("layer", "head"))
  table = np.zeros(shape)
  for row in mine:
    table[row["layer"], row["head"]] = row["discovery"]
  return table


def _layout(designs, tasks, tables):
  """Axes by design and task, and one for the colours."""
  layers, heads = np.max([t.shape for t in tables.values()], axis=0)
  cell = np.clip(2.4 / heads, 0.12, 0.3)
  width, height = cell * heads, max(cell * layers, 0.9)
  left, right, top, bottom, gap, line = 1.5, 1.1, 0.75, 0.5, 0.35, 0.36
  size = (
    left + len(tasks) * (width + gap) + right,
    top + len(designs) * (height + line) + bottom,
  )
  figure = Figure(figsize=size, facecolor="white")

  def place(x, y, w, h):
    return figure.add_axes(
      (x / size[0], 1 - (y + h) / size[1], w / size[0], h / size[1])
    )

  grid = [
    [
      place(left + j * (width + gap), top + i * (height + line), width, height)
      for j in range(len(tasks))
    ]
    for i in range(len(designs))
  ]
  tall = min(size[1] - top - bottom, 3.2)
  bar = place(left + len(tasks) * (width + gap), top + 0.15, 0.13, tall - 0.3)
  figure.text(
    0.15 / size[0], 1 - 0.3 / size[1], "Mean effect of patching one head",
    size=12, weight="bold",
  )  # fmt: skip
  return figure, grid, bar


def _draw(ax: Axes, table: np.ndarray, limit: float):
  reach = asinh_colour(limit)
  mesh = ax.pcolormesh(
    asinh_colour(table), cmap=COLOURS, vmin=-reach, vmax=reach,
    edgecolors="white", linewidth=0.5,
  )  # fmt: skip
  for flat in np.argsort(-table, axis=None, kind="stable")[:TOP]:
    layer, head = np.unravel_index(flat, table.shape)
    for colour, width in (("white", 2.2), (INK, 1.1)):
      ax.plot(
        head + 0.5, layer + 0.5, "o", ms=8, mfc="none", mec=colour, mew=width
      )
  for axis, count in ((ax.yaxis, len(table)), (ax.xaxis, len(table[0]))):
    shown = np.arange(0, count, 1 if count <= 8 else 3)
    axis.set_ticks(shown + 0.5, [str(i) for i in shown])
  ax.tick_params(length=0, labelsize=7, pad=1)
  ax.spines[:].set_visible(False)
  return mesh


def _caption(ax: Axes, row: Mapping | None) -> None:
  """Lambda and its p above a map."""
  if row is None or row["Lambda"] != row["Lambda"]:
    return
  text = f"\u039b = {row['Lambda']:.2f}, p = {row['p']:.2g}"
  ax.annotate(
    text, (1, 1), (0, 3), "axes fraction", "offset points", ha="right",
    color=FAINT, size=7.5,
  )  # fmt: skip
