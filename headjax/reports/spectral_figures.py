"""What do spectra and screens show? Figures of steps 1 and 2 of the study."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure

from headjax.reports.figures import FAINT, INK, STYLE

Rows = Sequence[Mapping[str, Any]]
PAINT = {
  "induction": "#cf4a26",
  "previous": "#1f62a8",
  "duplicate": "#7a4fa3",
  "first": "#b08a2e",
  "self": "#3f8f5b",
  "local": "#2f9aa0",
  "unclassified": "#c3c7cd",
}
HEAT = LinearSegmentedColormap.from_list(
  "selectivity", ["#f7f7f5", "#f7d9c4", "#f2a97c", "#cf4a26", "#6d1009"]
)
_MOST = 1000.0  # times the baseline: darker is not drawn


def ratio_trajectories(
  steps: Sequence[int], ratio: np.ndarray, kinds: np.ndarray, *, title: str
) -> Figure:
  """Participation ratios of all heads along training.

  Args:
    steps: `[step]`, ascending.
    ratio: `[step, layer, head]`, in directions.
    kinds: `[layer, head]`, the final class of each head, as text.
    title: of the figure.

  Returns:
    A figure for `save_figure`: a line a head in the colour of its class.
  """
  steps, ratio = np.asarray(steps), np.asarray(ratio)
  places = np.arange(len(steps))
  with matplotlib.rc_context(STYLE):
    figure, ax = _plain(7.4, 4.0, title, "one line a head; colour: final class")
    for kind, paint in reversed(PAINT.items()):
      of_kind = ratio[:, kinds == kind]
      if of_kind.size:
        known = kind != "unclassified"
        ax.plot(places, of_kind, color=paint, lw=1.5 if known else 0.6)
    labels = steps if len(steps) <= 12 else np.where(places % 2, "", steps)
    ax.set_xticks(places, [str(s) for s in labels])
    ax.set_xlabel("training steps (checkpoints at equal distances)")
    ax.set_ylabel("participation ratio (directions)")
    _legend(figure, kinds)
  return figure


def integral_ranking(rows: Rows, *, title: str) -> Figure:
  """Heads by the integral of their ratio, as bars in the colour of a class.

  Args:
    rows: of `trajectory.rows`, the largest integral first.
    title: of the figure.
  """
  with matplotlib.rc_context(STYLE):
    about = "dashed: the first 18% of heads; dotted: the elbow"
    figure, ax = _plain(7.4, 3.6, title, about)
    kinds = np.array([row["class"] for row in rows])
    ax.bar(
      range(1, len(rows) + 1),
      [row["integral"] for row in rows],
      color=[PAINT[k] for k in kinds],
      width=0.85,
    )
    kept = sum(row["kept"] for row in rows)
    bend = sum(row["elbow"] for row in rows)
    ax.axvline(kept + 0.5, color=INK, lw=0.8, ls=(0, (4, 3)))
    ax.axvline(bend + 0.5, color=INK, lw=0.8, ls=(0, (1, 2)))
    ax.set_xlim(0.3, len(rows) + 0.7)
    ax.set_xlabel("rank of the head")
    ax.set_ylabel("integral over log tokens")
    _legend(figure, kinds)
  return figure


def selectivity_maps(
  values: np.ndarray, kinds: Sequence[str], *, title: str, threshold: float
) -> Figure:
  """Heat maps of all heads, one a screen.

  Args:
    values: `[kind, layer, head]`, times the baseline; NaN where no row has a
      key of the kind.
    kinds: the screens.
    title: of the figure.
    threshold: from which on a cell is framed.

  Returns:
    A figure for `save_figure`; colour is logarithmic from 1 to 1,000.
  """
  values = np.asarray(values)
  n_columns = min(4, len(kinds))
  n_rows = -(-len(kinds) // n_columns)
  layers, heads = values.shape[1:]
  wide, high = np.clip([0.13 * heads, 0.13 * layers], 1.5, 4.2)
  size = n_columns * (wide + 0.55) + 1.5, n_rows * (high + 0.75) + 1.0
  with matplotlib.rc_context(STYLE):
    figure = Figure(figsize=size, facecolor="white")
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    figure.subplots_adjust(
      left=0.55 / size[0], right=1 - 1.25 / size[0], bottom=0.5 / size[1],
      top=1 - 0.95 / size[1], wspace=0.3, hspace=0.75 / high,
    )  # fmt: skip
    for ax in grid.ravel()[len(kinds) :]:
      ax.remove()
    for ax, kind, cells in zip(grid.ravel(), kinds, values, strict=False):
      shown = np.clip(np.nan_to_num(cells, nan=1.0), 1.0, _MOST)
      mesh = ax.pcolormesh(shown, cmap=HEAT, norm=LogNorm(1, _MOST))
      for layer, head in np.argwhere(cells >= threshold):
        frame = ([head, head + 1, head + 1, head, head],)
        ax.plot(
          *frame, [layer, layer, layer + 1, layer + 1, layer], INK, lw=0.9
        )
      count = int((cells >= threshold).sum())
      ax.set_title(f"{kind.replace('_', ' ')}: {count}", loc="left")
      ax.set_xticks(*_ticks(heads))
      ax.set_yticks(*_ticks(layers))
      ax.spines[:].set_visible(False)
    for ax in grid[:, 0]:
      ax.set_ylabel("layer")
    for ax in grid[-1]:
      ax.set_xlabel("head")
    bar = figure.add_axes((1 - 0.95 / size[0], 0.3, 0.14 / size[0], 0.4))
    figure.colorbar(mesh, cax=bar).outline.set_visible(False)
    bar.set_yticks([1, 10, 30, 100, 1000], ["1", "10", "30", "100", "1000"])
    bar.set_ylabel("times the baseline")
    about = f"framed and counted: at least {threshold:g} times the baseline"
    _titles(figure, title, about)
  return figure


def _plain(width: float, height: float, title: str, about: str):
  """A figure of one panel, with room for a legend on the right."""
  figure = Figure(figsize=(width, height), facecolor="white")
  ax = figure.subplots()
  figure.subplots_adjust(
    left=0.75 / width, right=1 - 1.75 / width, bottom=0.55 / height,
    top=1 - 0.75 / height,
  )  # fmt: skip
  ax.spines[["top", "right"]].set_visible(False)
  ax.grid(axis="y", color=FAINT, alpha=0.2, lw=0.6)
  ax.set_axisbelow(True)
  _titles(figure, title, about)
  return figure, ax


def _titles(figure: Figure, title: str, about: str) -> None:
  width, height = figure.get_size_inches()
  left = 0.12 / width
  figure.text(left, 1 - 0.3 / height, title, size=12, weight="bold")
  figure.text(left, 1 - 0.52 / height, about, color=FAINT)


def _legend(figure: Figure, kinds: np.ndarray) -> None:
  """The classes that there are, each with how many heads it has."""
  names = [k for k in PAINT if (kinds == k).any()]
  handles = [
    matplotlib.lines.Line2D([], [], color=PAINT[k], lw=4) for k in names
  ]
  labels = [f"{k} ({(kinds == k).sum()})" for k in names]
  figure.legend(handles, labels, loc="center right", frameon=False)


def _ticks(n: int):
  """Not more than eight numbers of rows or columns."""
  numbers = np.arange(0, n, -(-n // 8))
  return numbers + 0.5, [str(i) for i in numbers]
