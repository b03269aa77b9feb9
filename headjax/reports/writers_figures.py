"""What does a cell of writers and cancellers look like? Its four figures.

Source: paper C, whose forms these are.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headjax.reports.exclusivity_bars import head
from headjax.reports.figures import FAINT, INK, STYLE
from headjax.reports.names import name_points

Rows = Sequence[Mapping[str, Any]]
COLOURS = {"writer": "#cf4a26", "canceller": "#1f62a8", "weak": "#9aa1ab"}
GROUP_COLOURS = {
  "writers": COLOURS["writer"],
  "cancellers": COLOURS["canceller"],
  "both": "#6b4f8a",
}
_NAMED = 8  # heads of each figure, if no more than these have a role


def attribution_figure(
  attribution: np.ndarray, rows: Rows, *, title: str
) -> Figure:
  """The signed attribution of every head against its layer.

  Args:
    attribution: `[layer, head]` means, in logits.
    rows: of the candidates, with `head` and `role`.
    title: of the figure.

  Returns:
    A figure for `save_figure`.
  """
  mean = np.asarray(attribution, float)
  role = {row["head"]: row["role"] for row in rows}
  with matplotlib.rc_context(STYLE):
    figure, ax = _single(7.4, 4.2)
    # Heads of a layer side by side, so that none hides another.
    n_layers, n_heads = mean.shape
    shift = (np.arange(n_heads) - (n_heads - 1) / 2) * 0.6 / n_heads
    every = [f"L{i}.H{j}" for i, j in np.ndindex(mean.shape)]
    where = np.arange(n_layers)[:, None] + shift
    for kind in ("other", "weak", "canceller", "writer"):
      mine = np.array([_kind(role.get(name)) == kind for name in every])
      mine = mine.reshape(mean.shape)
      if mine.any():
        ax.plot(
          where[mine], mean[mine], "o", ls="", mec="white", mew=0.4,
          ms=3 if kind == "other" else 5.5,
          color=COLOURS.get(kind, "#d3d7dc"), label=_LABELS[kind],
        )  # fmt: skip
    largest = np.argsort(-np.abs(mean), axis=None, kind="stable")[:_NAMED]
    ax.axhline(0, color=INK, lw=0.8)
    ax.set_xlim(-0.7, n_layers - 0.3)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.margins(y=0.12)
    x, y = where.ravel(), mean.ravel()
    name_points(
      ax,
      {every[i]: (x[i], y[i]) for i in largest},
      np.c_[x, y],
      [[-1, 0, n_layers, 0]],
    )
    ax.set_xlabel("layer")
    ax.set_ylabel("direct attribution (logits)")
    _legend(ax)
    head(figure, title, "a point is a head; above 0 it writes for the answer")
  return figure


def role_figure(rows: Rows, *, title: str, margin: float = 0.05) -> Figure:
  """Direct against total share of the swing, of every candidate.

  Args:
    rows: of the candidates, with `direct`, its interval, `total` and `role`.
    title: of the figure.
    margin: share from which a head is no weak one.

  Returns:
    A figure for `save_figure`.
  """
  shown = [row for row in rows if row["direct"] == row["direct"]]
  with matplotlib.rc_context(STYLE):
    figure, ax = _single(6.2, 4.6)
    ax.axhspan(-100 * margin, 100 * margin, color=FAINT, alpha=0.1, lw=0)
    ax.axhline(0, color=INK, lw=0.6)
    ax.axvline(0, color=INK, lw=0.6)
    for kind in ("weak", "canceller", "writer"):
      mine = [row for row in shown if _kind(row["role"]) == kind]
      if not mine:
        continue
      total, direct, low, high = (
        100 * np.array([row[name] for row in mine])
        for name in ("total", "direct", "direct_low", "direct_high")
      )
      ax.errorbar(
        total, direct, (direct - low, high - direct), fmt="o", ms=5,
        mec="white", mew=0.4, elinewidth=0.9, color=COLOURS[kind],
        label=_LABELS[kind],
      )  # fmt: skip
    ax.margins(0.12)
    if shown:
      _name_heads(ax, shown)
      _legend(ax)
    else:
      _say(ax, "no pair has a swing")
    ax.set_xlabel("total effect (% of the swing)")
    ax.set_ylabel("direct effect (% of the swing)")
    about = "lines: 95% intervals; shaded: weak heads"
    head(figure, title, about)
  return figure


def lesion_figure(
  changes: Mapping[str, Mapping[str, Any]], *, title: str, floor: float = 0.10
) -> Figure:
  """What the answer loses without each group.

  Args:
    changes: ablation -> group -> interval, in logits.
    title: of the figure.
    floor: size of a large change.

  Returns:
    A figure for `save_figure`.
  """
  with matplotlib.rc_context(STYLE):
    figure, ax = _single(5.4, 3.8)
    ax.axhspan(-floor, floor, color=FAINT, alpha=0.1, lw=0)
    for i, (group, paint) in enumerate(GROUP_COLOURS.items()):
      for j, found in enumerate(changes.values()):
        bar = found[group]
        x = j + 0.26 * (i - 1)
        ax.bar(
          x, bar.estimate, 0.23, color=paint, alpha=0.75,
          label=f"without {group}" if j == 0 else None,
        )  # fmt: skip
        ax.plot((x, x), (bar.low, bar.high), color=INK, lw=1.2)
    ax.axhline(0, color=INK, lw=0.8)
    ax.set_xticks(range(len(changes)), [f"{name} ablation" for name in changes])
    ax.tick_params(axis="x", length=0)
    ax.set_ylabel("change of logit difference")
    ax.margins(y=0.15)
    bars = [bar for found in changes.values() for bar in found.values()]
    if any(bar.estimate or bar.low or bar.high for bar in bars):
      _legend(ax)
    else:
      _say(ax, "no head has a role, so none is taken away")
    head(figure, title, "lines: 95% BCa intervals; shaded: small changes")
  return figure


def attention_figure(rows: Rows, *, title: str) -> Figure:
  """Where writers and cancellers look, by kind of token.

  Args:
    rows: with `source`, `writers`, `cancellers` and `p_holm`.
    title: of the figure.

  Returns:
    A figure for `save_figure`.
  """
  with matplotlib.rc_context(STYLE):
    figure, ax = _single(6.2, 3.6)
    for side, group in ((-1, "writers"), (1, "cancellers")):
      ax.bar(
        np.arange(len(rows)) + 0.19 * side, [row[group] for row in rows], 0.35,
        color=GROUP_COLOURS[group], alpha=0.75, label=group,
      )  # fmt: skip
    for i, row in enumerate(rows):
      top = max(row["writers"], row["cancellers"])
      ax.annotate(
        f"p = {row['p_holm']:.2g}", (i, top), (0, 3), "data", "offset points",
        ha="center", fontsize=8, color=FAINT,
      )  # fmt: skip
    names = [row["source"].replace("_", " ") for row in rows]
    ax.set_xticks(range(len(rows)), names)
    ax.tick_params(axis="x", length=0)
    ax.set_ylabel("attention at the answer")
    ax.margins(y=0.15)
    _legend(ax)
    head(figure, title, "means over heads; p of exchanged roles, after Holm")
  return figure


_LABELS = {
  "writer": "writers",
  "canceller": "cancellers",
  "weak": "other candidates",
  "other": "other heads",
}


def _kind(role: str | None) -> str:
  """Under which label a head is drawn."""
  if role is None:
    return "other"
  return role if role in COLOURS else "weak"


def _single(width: float, height: float) -> tuple[Figure, Axes]:
  """A figure with one set of axes under two lines of text."""
  figure = Figure(figsize=(width, height), facecolor="white")
  ax = figure.add_axes(
    (
      0.8 / width,
      0.55 / height,
      (width - 1.0) / width,
      (height - 1.3) / height,
    )
  )
  ax.spines[["top", "right"]].set_visible(False)
  return figure, ax


def _legend(ax: Axes) -> None:
  """In a row above the axes, where it hides no interval."""
  ax.legend(
    loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False,
    fontsize=8, borderaxespad=0, columnspacing=1.2, handletextpad=0.4,
  )  # fmt: skip


def _say(ax: Axes, why: str) -> None:
  """Why there is nothing to see, in the middle."""
  ax.text(0.5, 0.55, why, transform=ax.transAxes, ha="center", color=FAINT)


def _name_heads(ax: Axes, rows: Rows) -> None:
  """Names all heads with a role, then those that stand out in the figure."""
  points, ends = (
    100 * np.array([[row[name] for name in names] for row in rows])
    for names in (
      ("total", "direct"),
      ("total", "direct_low", "total", "direct_high"),
    )
  )
  role = np.array([row["role"] in ("writer", "canceller") for row in rows])
  # In either direction: a head that acts through others is on the right.
  size = np.abs(points).max(axis=0)
  far = np.linalg.norm(points / np.where(size > 0, size, 1), axis=1)
  order = np.lexsort((-far, ~role))[: max(_NAMED, role.sum())]
  (left, right), (below, above) = ax.get_xlim(), ax.get_ylim()
  zero = [[left, 0, right, 0], [0, below, 0, above]]
  name_points(
    ax,
    {rows[i]["head"]: tuple(points[i]) for i in order},
    points,
    np.vstack([ends, zero]),
  )
