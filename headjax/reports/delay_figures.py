"""How long do models take to grok, over one quantity, and by which law?"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from headjax.reports.core_figures import PAINTS
from headjax.reports.exclusivity_bars import head
from headjax.reports.figures import FAINT, INK, STYLE


def delay_figure(
  runs: Sequence[Mapping[str, Any]],
  points: Sequence[Mapping[str, Any]],
  field: str,
  *,
  exponent: float | None = None,
) -> Figure:
  """Delays of all runs, their medians, and a power law through these.

  Args:
    runs: with `field` and `delay`, in epochs; delays of 0 and infinite ones, of
      runs that never grokked, are not drawn.
    points: of `studies.cores.sweeps.point_rows`; a median may be nan.
    field: what is varied, the horizontal axis.
    exponent: of the law delay ~ field^exponent; None draws none.

  Returns:
    A figure for `save_figure`, with logarithmic axes.
  """
  with matplotlib.rc_context(STYLE):
    figure = Figure(figsize=(5.4, 4.2), facecolor="white")
    ax = figure.add_axes((0.15, 0.13, 0.8, 0.66))
    known = [r for r in runs if 0 < r["delay"] < np.inf]
    ax.scatter(
      [r[field] for r in known], [r["delay"] for r in known], s=16, alpha=0.5,
      color=PAINTS[0], edgecolor="white", lw=0.4, label="a run",
    )  # fmt: skip
    told = [r for r in points if r["delay"] > 0]
    x = np.array([r[field] for r in told], float)
    y = np.array([r["delay"] for r in told], float)
    ax.plot(x, y, color=PAINTS[0], lw=1.8, marker=".", label="median")
    if exponent is not None:
      scale = np.exp(np.mean(np.log(y) - exponent * np.log(x)))
      ax.plot(
        x, scale * x**exponent, color=INK, lw=0.9, ls=(0, (5, 3)),
        label=f"power {exponent:.2f}",
      )  # fmt: skip
    _frame(ax, field, sorted({r[field] for r in points}))
    head(
      figure, "Time to grok",
      "epochs between knowing the sums that are shown and the others",
    )  # fmt: skip
  return figure


def _frame(ax, field, places):
  """Logarithmic axes whose ticks are plain numbers."""
  ax.set(xscale="log", yscale="log")
  ax.set_xticks(places, [f"{place:g}" for place in places])
  ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
  ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
  for axis in (ax.xaxis, ax.yaxis):
    axis.set_minor_locator(NullLocator())
  ax.set_xlabel("modulus p" if field == "p" else field.replace("_", " "))
  ax.set_ylabel("epochs")
  ax.spines[["top", "right"]].set_visible(False)
  ax.grid(color=FAINT, alpha=0.2, lw=0.6)
  ax.legend(frameon=False, fontsize=8)
