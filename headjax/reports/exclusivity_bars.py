"""What does a design do, over seeds and tasks? Bars, pairs and points.

A point is a run, a bar the mean over the runs of a design, and a line through
it the 95% interval over seeds.

Source: paper A, figures 3 and 4, whose forms these are.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headjax.reports.designs import (
  by_design,
  colour,
  legend_width,
  ordered,
  tasks_of,
)
from headjax.reports.figures import FAINT, INK, STYLE
from headjax.statistics import seed_interval

Rows = Sequence[Mapping[str, Any]]


def design_bars(
  rows: Rows,
  quantity: str,
  *,
  title: str,
  about: str,
  label: str,
  chance: float | None = None,
) -> Figure:
  """One number by design, a panel for each task.

  Args:
    rows: with `design`, `task` and the quantity.
    quantity: the column.
    title: of the figure.
    about: a line about it.
    label: of the axis, with the unit.
    chance: where a line marks what chance would give; None for no line.

  Returns:
    A figure for `save_figure`.
  """
  tasks = tasks_of(rows)
  designs = ordered(row["design"] for row in rows)
  with matplotlib.rc_context(STYLE):
    figure, axes = panels(tasks, designs)
    for ax, task in zip(axes, tasks, strict=True):
      for place, design in enumerate(designs):
        values = [
          r[quantity] for r in by_design(rows, task=task).get(design, ())
        ]
        _bar(ax, place, values, colour(design))
      if chance is not None:
        ax.axvline(chance, color=INK, lw=0.9, ls=(0, (4, 3)), zorder=3)
      ax.set_xlim(0, _end(rows, quantity, task, chance))
      ax.set_xlabel(label)
      ax.set_title(task, loc="left", weight="bold")
    head(figure, title, about + "; dashed: chance" * (chance is not None))
  return figure


def _end(rows: Rows, quantity: str, task: str, chance: float | None) -> float:
  """Of the axis: all runs are in it, whereas an interval may lead out of it."""
  values = [r[quantity] for r in rows if r["task"] == task]
  largest = max([chance or 0.0, *(v for v in values if v > 0)])
  return 1.25 * largest if largest else 1.0


def half_figure(rows: Rows, *, chance: float) -> Figure:
  """Lambda within even and within odd head indices, a line for each run.

  Args:
    rows: of the table `halves`.
    chance: of a half.

  Returns:
    A figure for `save_figure`.
  """
  tasks = tasks_of(rows)
  designs = ordered(row["design"] for row in rows)
  with matplotlib.rc_context(STYLE):
    figure, axes = panels(tasks, designs)
    for ax, task in zip(axes, tasks, strict=True):
      for place, design in enumerate(designs):
        for row in by_design(rows, task=task).get(design, ()):
          ends = row["rotating"], row["shared"]
          ax.plot(ends, (place + 0.2, place - 0.2), color=FAINT, lw=0.6)
          ax.plot(*_at(ends[0], place + 0.2), "o", ms=4, mfc="white", mec=INK)
          ax.plot(*_at(ends[1], place - 0.2), "o", ms=4, color=colour(design))
      ax.axvline(chance, color=INK, lw=0.9, ls=(0, (4, 3)), zorder=0)
      ax.set_xlim(-0.03, 1.03)
      ax.set_xlabel("\u039b within a half of the indices")
      ax.set_title(task, loc="left", weight="bold")
    head(
      figure,
      "Do only shared indices form lanes?",
      "filled: even indices, which a half-shared design keeps in one space;"
      " open: odd ones; a line is a run; dashed: chance",
    )
  return figure


def loss_figure(concentration: Rows, performance: Rows) -> Figure:
  """Validation loss against the geometric mean of Neff over tasks.

  Args:
    concentration: rows of that table.
    performance: rows of that table.

  Returns:
    A figure for `save_figure`.
  """
  loss = {row["run"]: row["validation_loss"] for row in performance}
  spread: dict[str, list[float]] = {}
  design = {row["run"]: row["design"] for row in concentration}
  for row in concentration:
    spread.setdefault(row["run"], []).append(row["neff"])
  names = ordered(design.values())
  width = 5.05 + legend_width(names)
  with matplotlib.rc_context(STYLE):
    figure = Figure(figsize=(width, 4.6))
    ax = figure.add_axes((0.7 / width, 0.13, 4.55 / width, 0.68))
    for name in names:
      runs = [r for r in spread if design[r] == name and loss[r] == loss[r]]
      x = [loss[run] for run in runs]
      y = [np.exp(np.mean(np.log(spread[run]))) for run in runs]
      if runs:
        ax.plot(
          x, y, ls="", ms=6, alpha=0.8, color=colour(name), mec="white",
          marker=_marker(name, design.values()), label=name,
        )  # fmt: skip
    ax.set_xlabel("validation loss (nats a token)")
    ax.set_ylabel("N$_{eff}$, geometric mean over tasks (heads)")
    ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    head(figure, "Loss and concentration", "a point is a run")
  return figure


def _marker(design: str, designs) -> str:
  """Designs of one family differ in their marks."""
  family = [d for d in ordered(designs) if colour(d) == colour(design)]
  return "osD^vPX*<>h"[family.index(design) % 11]


def panels(
  tasks: Sequence[str], designs: Sequence[str]
) -> tuple[Figure, list[Axes]]:
  """A figure with a panel for each task, which share the designs' axis."""
  longest = max(map(len, designs), default=1)
  left, width, gap = 0.25 + 0.075 * longest, 2.3, 0.35
  height, top, bottom = 0.3 * len(designs) + 0.2, 0.95, 0.6
  size = (
    left + len(tasks) * (width + gap) + 0.1,
    top + height + bottom,
  )
  figure = Figure(figsize=size)
  axes = [
    figure.add_axes(
      (
        (left + i * (width + gap)) / size[0],
        bottom / size[1],
        width / size[0],
        height / size[1],
      )
    )
    for i in range(len(tasks))
  ]
  for ax in axes:
    ax.set_ylim(len(designs) - 0.4, -0.6)
    shown = designs if ax is axes[0] else [""] * len(designs)
    ax.set_yticks(range(len(designs)), shown)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis="x", color=FAINT, alpha=0.2, lw=0.6)
    ax.set_axisbelow(True)
  return figure, axes


def _bar(ax: Axes, place: int, values, paint: str) -> None:
  """A bar for the mean, dots for the runs, a line for the interval."""
  values = np.array([v for v in values if v == v], float)
  if not len(values):
    ax.text(0, place, " no value", va="center", color=FAINT)
    return
  interval = seed_interval(values)
  ax.barh(place, interval.estimate, 0.62, color=paint, alpha=0.3)
  spots = place + np.linspace(-0.16, 0.16, len(values)) * (len(values) > 1)
  ax.plot(values, spots, "o", ms=3, color=paint, mec="white", mew=0.3)
  if interval.low == interval.low:
    ends = max(interval.low, 0.0), interval.high
    ax.plot(ends, (place, place), color=INK, lw=1.2)


def _at(x: float, y: float):
  return [x], [y]


def head(figure: Figure, title: str, about: str) -> None:
  """Writes a title and a line under it, at the left."""
  height = figure.get_size_inches()[1]
  left = 0.12 / figure.get_size_inches()[0]
  figure.text(left, 1 - 0.28 / height, title, size=12, weight="bold")
  figure.text(left, 1 - 0.5 / height, about, color=FAINT)
