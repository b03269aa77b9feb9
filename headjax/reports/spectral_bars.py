"""How much is lost without a circuit, and when was it found? Two figures."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from headjax.reports.figures import FAINT, INK, STYLE

Rows = Sequence[Mapping[str, Any]]
_BARS = ("base", "circuit", "random", "upper")
_LABELS = ("whole model", "circuit", "random heads", "all heads")
_PAINT = ("#9aa1ab", "#cf4a26", "#7fb2d9", "#3c4654")


def ablation_bars(
  panels: Mapping[str, Mapping[str, np.ndarray]],
  verdicts: Mapping[str, str],
  *,
  title: str,
) -> Figure:
  """Right answers without each circuit, beside its controls.

  Args:
    panels: circuit -> role ("base", "circuit", "random", "sweep", "upper") ->
      the shares of right answers of its groups.
    verdicts: circuit -> its verdict.
    title: of the figure.

  Returns:
    A figure for `save_figure`: a panel a circuit; dots are single draws.
  """
  width = 1.2 + 2.35 * len(panels)
  with matplotlib.rc_context(STYLE):
    figure = Figure(figsize=(max(width, 4.6), 3.9), facecolor="white")
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    size = figure.get_size_inches()
    figure.subplots_adjust(
      left=0.75 / size[0], right=1 - 0.2 / size[0], bottom=0.95 / size[1],
      top=1 - 1.15 / size[1], wspace=0.12,
    )  # fmt: skip
    for ax, (circuit, values) in zip(grid, panels.items(), strict=True):
      heights = [float(np.mean(values[name])) for name in _BARS]
      ax.bar(range(4), heights, color=_PAINT, width=0.72)
      for role, place, marker in (("random", 1.85, "o"), ("sweep", 2.2, "D")):
        dots = np.atleast_1d(values.get(role, []))
        jitter = np.linspace(-0.1, 0.1, len(dots)) if len(dots) else dots
        ax.plot(
          place + jitter, dots, marker, ms=2.6, color=INK, alpha=0.55, lw=0,
          clip_on=False,
        )  # fmt: skip
      for place, (role, height) in enumerate(zip(_BARS, heights, strict=True)):
        top = max(height, *_dots(values, role))  # clear of the bar's dots
        ax.annotate(
          f"{height:.1%}", (place, top), (0, 4), "data", "offset points",
          ha="center", size=8,
        )  # fmt: skip
      ax.set_title(f"{circuit}\n{verdicts[circuit]}", loc="left", size=9)
      ax.set_xticks(range(4), _LABELS, rotation=35, ha="right")
      ax.spines[["top", "right"]].set_visible(False)
      ax.grid(axis="y", color=FAINT, alpha=0.2, lw=0.6)
      ax.set_axisbelow(True)
    grid[0].set_ylabel("right answers (top 1)")
    grid[0].set_ylim(0, 1.08 * max(0.01, *_all(panels)))
    about = "dots: matched random draws; diamonds: the sweep of ten seeds"
    _titles(figure, title, about)
  return figure


def recall_curves(
  tables: Mapping[str, Rows], shares: Rows, *, title: str
) -> Figure:
  """How much of the final circuits each checkpoint shows.

  Args:
    tables: circuit -> rows of `development.recall`.
    shares: rows of `development.class_shares`.
    title: of the figure.

  Returns:
    A figure for `save_figure`: recall above, shares of heads below.
  """
  with matplotlib.rc_context(STYLE):
    figure = Figure(figsize=(7.8, 5.0), facecolor="white")
    upper, lower = figure.subplots(2, 1, sharex=True)
    figure.subplots_adjust(0.1, 0.13, 0.7, 0.85, hspace=0.14)
    places = np.arange(len(shares))
    paints = ("#cf4a26", "#1f62a8", "#3f8f5b", "#7a4fa3")
    for paint, (name, rows) in zip(paints, tables.items(), strict=False):
      for column, style in (("recall", "-"), ("lenient_recall", (0, (2, 2)))):
        label = name if column == "recall" else f"{name}, low threshold"
        upper.plot(
          places, [r[column] for r in rows], color=paint, ls=style, lw=1.7,
          marker="o", ms=3, label=label,
        )  # fmt: skip
    upper.axhline(2 / 3, color=INK, lw=0.8, ls=(0, (4, 3)))
    upper.set_ylabel("recall of the final circuit")
    upper.set_ylim(-0.04, 1.06)
    for name, paint in (
      ("first", "#b08a2e"), ("previous", "#1f62a8"), ("induction", "#cf4a26"),
      ("conserved", INK),
    ):  # fmt: skip
      label = "above the null" if name == "conserved" else f"class {name}"
      lower.plot(
        places, [r[name] for r in shares], color=paint, lw=1.7, label=label,
        marker="o", ms=3,
      )  # fmt: skip
    lower.set_ylabel("share of all heads")
    lower.set_xticks(places, [f"{r['step']:,}" for r in shares], rotation=45)
    lower.set_xlabel("training steps (checkpoints at equal distances)")
    for ax in (upper, lower):
      ax.spines[["top", "right"]].set_visible(False)
      ax.grid(axis="y", color=FAINT, alpha=0.2, lw=0.6)
      ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    _titles(figure, title, "dashed line: two thirds")
  return figure


def _dots(values, role: str) -> list[float]:
  """The single draws that are drawn over the bar of a role, and 0."""
  roles = ("random", "sweep") if role == "random" else ()
  return [0.0, *(x for r in roles for x in np.ravel(values.get(r, [])))]


def _all(panels) -> list[float]:
  return [
    float(np.max(v)) for p in panels.values() for v in p.values() if np.size(v)
  ]


def _titles(figure: Figure, title: str, about: str) -> None:
  width, height = figure.get_size_inches()
  left = 0.12 / width
  figure.text(left, 1 - 0.3 / height, title, size=12, weight="bold")
  figure.text(left, 1 - 0.52 / height, about, color=FAINT)
