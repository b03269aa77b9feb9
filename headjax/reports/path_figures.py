"""Which way do the top heads' effects take, and what do clamps take away?

Source: paper A, figures 6 (d, e) and 8.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from headjax.reports.designs import by_design, ordered, tasks_of
from headjax.reports.exclusivity_bars import head, panels
from headjax.reports.figures import FAINT, INK, STYLE

Rows = Sequence[Mapping[str, Any]]
PATHS = {
  "direct": ("direct_share", "#22262b"),
  "via MLPs": ("via_mlps_mlps_first_share", "#b0832a"),
  "via later attention": ("via_attention_mlps_first_share", "#1f62a8"),
}
CLAMPED = {
  "heads": ("later heads", "#1f62a8"),
  "mlps": ("MLPs", "#b0832a"),
  "everything": ("both", "#22262b"),
}


def path_figure(shares: Rows) -> Figure:
  """The summed effects of the top heads by paths, a panel a task.

  Args:
    shares: rows of the table `path-shares`, of one choice of top heads.

  Returns:
    A figure for `save_figure`: means over runs, in logits.
  """
  tasks = tasks_of(shares)
  designs = ordered(row["design"] for row in shares)
  with matplotlib.rc_context(STYLE):
    figure, axes = panels(tasks, designs)
    for ax, task in zip(axes, tasks, strict=True):
      for design, rows in by_design(shares, task=task).items():
        _stack(ax, designs.index(design), rows)
      ax.axvline(0, color=INK, lw=0.8)
      ax.set_xlabel("effect of the top heads (logits)")
      ax.set_title(task, loc="left", weight="bold")
    marks = [
      matplotlib.patches.Patch(color=paint) for _, paint in PATHS.values()
    ]
    _legend(figure, marks, list(PATHS))
    head(
      figure,
      "Which way do effects take?",
      "clamps of MLPs released first; mean over runs",
    )
  return figure


def _stack(ax, place: int, rows: Rows) -> None:
  """Parts beside each other; negative ones to the left of 0."""
  ends = {True: 0.0, False: 0.0}
  for name, paint in PATHS.values():
    part = float(np.mean([row[name] * row["total"] for row in rows]))
    side = part >= 0
    ax.barh(place, part, 0.6, left=ends[side], color=paint)
    ends[side] += part


def clamp_figure(parts: Rows) -> Figure:
  """What clamping a part takes from each top head's effect.

  Args:
    parts: rows of the table `part-clamps`, of one choice of top heads.

  Returns:
    A figure for `save_figure`: a dot is a head of a run.
  """
  tasks = tasks_of(parts)
  designs = ordered(row["design"] for row in parts)
  with matplotlib.rc_context(STYLE):
    figure, axes = panels(tasks, designs)
    for ax, task in zip(axes, tasks, strict=True):
      for design, rows in by_design(parts, task=task).items():
        place = designs.index(design)
        for i, (clamped, (_, paint)) in enumerate(CLAMPED.items()):
          x = [r["reduction"] for r in rows if r["clamped"] == clamped]
          y = [place + 0.22 * (i - 1)] * len(x)
          ax.plot(
            np.clip(x, -0.5, 1.5), y, "o", ms=3.5, alpha=0.6, color=paint,
            mec="white", mew=0.3,
          )  # fmt: skip
      ax.axvline(0, color=FAINT, lw=0.8)
      ax.set_xlim(-0.55, 1.55)
      ax.set_xlabel("share of the effect taken away")
      ax.set_title(task, loc="left", weight="bold")
    marks = [
      matplotlib.lines.Line2D([], [], color=paint, marker="o", ls="")
      for _, paint in CLAMPED.values()
    ]
    _legend(figure, marks, [name for name, _ in CLAMPED.values()])
    head(
      figure,
      "What do clamps take away?",
      "a dot is a top head of a run; MLPs: from its own layer on; what lies"
      " beyond stands at the edge",
    )
  return figure


def _legend(figure: Figure, marks: list, names: list[str]) -> None:
  """In the corner above the panels, where nothing else stands."""
  figure.legend(
    marks, names, loc="upper right", ncols=len(names), frameon=False,
    columnspacing=1.0, handletextpad=0.4, handlelength=1.0,
  )  # fmt: skip
