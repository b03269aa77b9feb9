"""What do cores do, over their rank, their training and the layers?"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from headjax.reports.figures import FAINT, INK, STYLE

PAINTS = (
  "#1f6fb2", "#d1495b", "#2e8b57", "#b8860b", "#6a4c93", "#4a4e57", "#00868b",
)  # fmt: skip

LEGEND = 2.1  # inches beside a plane
DASHES = ((0, (5, 3)), (0, (1, 2)), (0, (5, 2, 1, 2)))


@dataclasses.dataclass(frozen=True)
class Panel:
  """One plot of lines.

  Attributes:
    title: of the panel.
    x: column of the horizontal axis.
    lines: column -> its label.
    x_label: of the horizontal axis.
    y_label: of the vertical axis.
    marks: label -> a height that is marked by a broken line; three at most.
    log_x: whether the horizontal axis is logarithmic, with a tick at every
      value.
    limits: the lowest and highest height that are shown; None means those of
      the lines.
  """

  title: str
  x: str
  lines: Mapping[str, str]
  x_label: str
  y_label: str
  marks: Mapping[str, float] = dataclasses.field(default_factory=dict)
  log_x: bool = False
  limits: tuple[float | None, float | None] = (None, None)


def line_figure(
  rows: Sequence[Mapping[str, Any]],
  panels: Sequence[Panel],
  *,
  title: str,
  by: str | None = None,
) -> Figure:
  """Panels of lines side by side, from the columns of rows.

  Args:
    rows: with the panels' columns; a missing value leaves a gap.
    panels: what is shown.
    title: of the figure.
    by: a column whose values, such as the models, have a thin line each beside
      their mean; None means that there is one line.

  Returns:
    A figure for `save_figure`.
  """
  with matplotlib.rc_context(STYLE):
    figure, grid = _frame(len(panels), title)
    for ax, panel in zip(grid, panels, strict=True):
      for paint, (column, label) in zip(
        PAINTS, panel.lines.items(), strict=False
      ):
        _draw(ax, rows, panel.x, column, by, paint, label)
      marks = zip(DASHES, panel.marks.items(), strict=False)
      for dashes, (name, height) in marks:
        ax.axhline(height, color=FAINT, lw=0.9, ls=dashes, label=name)
      if panel.log_x:
        ax.set_xscale("log")
        places = sorted({row[panel.x] for row in rows})
        ax.set_xticks(places, [f"{place:g}" for place in places], minor=False)
        ax.minorticks_off()
      _finish(ax, panel.title, panel.x_label, panel.y_label)
      ax.set_ylim(*panel.limits)
      ax.legend(frameon=False, fontsize=8, loc="best")
  return figure


def spectrum_figure(
  found: Mapping[str, np.ndarray], expected: np.ndarray, *, title: str
) -> Figure:
  """Eigenvalues in the complex plane, with those that are expected.

  Args:
    found: name -> `[k]` complex eigenvalues.
    expected: `[k]` complex.
    title: of the figure.
  """
  with matplotlib.rc_context(STYLE):
    figure, [ax] = _frame(1, title, height=3.6)
    angle = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(angle), np.sin(angle), color=FAINT, lw=0.8)
    ax.scatter(
      expected.real, expected.imag, s=150, marker="o", facecolor="none",
      edgecolor=INK, lw=1.1, label="expected",
    )  # fmt: skip
    for paint, (name, values) in zip(PAINTS, found.items(), strict=False):
      ax.scatter(
        values.real, values.imag, s=28, marker="x", color=paint, label=name
      )
    ax.set_aspect("equal")
    _finish(ax, "eigenvalues", "real part", "imaginary part")
    ax.set_xticks((-1, -0.5, 0, 0.5, 1))
    ax.set_yticks((-1, -0.5, 0, 0.5, 1))
    wide, high = figure.get_size_inches()
    figure.set_size_inches(wide + LEGEND, high)
    figure.subplots_adjust(
      left=0.7 / (wide + LEGEND), right=(wide - 0.25) / (wide + LEGEND)
    )
    ax.legend(
      frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.02, 1)
    )
  return figure


def _frame(n: int, title: str, height: float = 2.7):
  size = (3.6 * n + 0.9, height + 1.15)
  figure = Figure(figsize=size, facecolor="white")
  grid = figure.subplots(1, n, squeeze=False)[0]
  figure.subplots_adjust(
    left=0.7 / size[0],
    right=1 - 0.25 / size[0],
    bottom=0.5 / size[1],
    top=1 - 0.65 / size[1],
    wspace=0.28,
  )
  figure.text(0.12 / size[0], 1 - 0.27 / size[1], title, size=12, weight="bold")
  return figure, grid


def _draw(ax, rows, x, column, by, paint, label):
  """One column; with `by`, thin lines and their mean."""
  groups: dict[Any, dict[float, float]] = {}
  for row in rows:
    value = row.get(column)
    value = np.nan if value is None else value
    groups.setdefault(row[by] if by else "", {})[row[x]] = value
  places = sorted({place for group in groups.values() for place in group})
  table = np.array(
    [
      [group.get(place, np.nan) for place in places]
      for group in groups.values()
    ]
  )
  if len(table) > 1:
    for line in table:
      ax.plot(places, line, color=paint, lw=0.6, alpha=0.4)
  known = ~np.isnan(table)
  mean = np.where(known, table, 0).sum(0) / np.maximum(known.sum(0), 1)
  mean = np.where(known.any(0), mean, np.nan)
  ax.plot(places, mean, color=paint, lw=1.8, marker=".", ms=4, label=label)


def _finish(ax, title, x_label, y_label):
  ax.set_title(title, loc="left", weight="bold")
  ax.set_xlabel(x_label)
  ax.set_ylabel(y_label)
  ax.spines[["top", "right"]].set_visible(False)
  ax.grid(color=FAINT, alpha=0.2, lw=0.6)
