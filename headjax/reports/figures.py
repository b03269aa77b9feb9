"""Which heads matter, at one look? The heat map of head effects.

Figures are built with matplotlib's objects, never through pyplot: they share
no state with the caller's own figures and need no display.
"""

import dataclasses
import os
import pathlib
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headjax.checks import check
from headjax.files import atomic
from headjax.outline import of_fields, table_of_fields
from headjax.reports.colours import (
  COLOURS,
  LINEAR_WIDTH,
  asinh_colour,
  draw_colorbar,
)

INK, FAINT = "#22262b", "#6b7280"
STYLE = {
  "font.family": "DejaVu Sans",
  "font.size": 9,
  "text.color": INK,
  "axes.labelcolor": INK,
  "axes.edgecolor": FAINT,
  "xtick.color": FAINT,
  "xtick.labelcolor": INK,
  "ytick.color": FAINT,
  "ytick.labelcolor": INK,
  "pdf.fonttype": 42,
}


@dataclasses.dataclass(frozen=True)
class Panel:
  """One heat map of a figure.

  Attributes:
    effect: `[layer, head]` mean effects, or `[example, layer, head]`, whose
      mean over examples is shown, in logits (nats).
    title: what was measured, such as the task.
    base: logit difference without a patch, a number or `[example]`, in logits
      (nats).
  """

  effect: np.ndarray
  title: str
  base: np.ndarray | float

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def __post_init__(self):
    effect = np.asarray(self.effect, np.float64)
    check(
      effect.ndim in (2, 3) and effect.size and np.isfinite(effect).all(),
      f"effect of {self.title!r}",
      f"shape {effect.shape}, {np.isfinite(effect).sum()} of them finite",
      "finite values [layer, head] or [example, layer, head]",
      "pass the effects of one run",
    )

  @property
  def mean_effect(self) -> np.ndarray:
    """`[layer, head]`: the mean over examples where there are any."""
    effect = np.asarray(self.effect, np.float64)
    return effect if effect.ndim == 2 else effect.mean(0)

  @property
  def about(self) -> str:
    """The line under the title: the base, and over how many prompts."""
    line = f"base logit difference {np.mean(self.base):.2f}"
    if np.ndim(self.effect) == 3:
      line += f", {len(self.effect)} prompts"
    return line


def head_heatmap(
  effect: np.ndarray,
  *,
  title: str,
  base: np.ndarray | float,
  circles: int = 5,
) -> Figure:
  """The heat map of one task; see `head_heatmaps`.

  Args:
    effect: `[layer, head]` or `[example, layer, head]`, in logits (nats).
    title: what was measured.
    base: logit difference without a patch, a number or `[example]`.
    circles: how many of the largest absolute effects to name.

  Returns:
    A figure for `save_figure`.
  """
  return head_heatmaps([Panel(effect, title, base)], circles=circles)


def head_heatmaps(panels: Sequence[Panel], *, circles: int = 5) -> Figure:
  """Heat maps of head effects side by side, on one colour scale.

  Colour is asinh(effect / 0.2), symmetric around 0, from the largest absolute
  effect or 0.2 logits at least: heads that help are red, heads that hurt are
  blue. Layer 0 is at the bottom.

  Args:
    panels: the tasks or models to compare.
    circles: how many of the largest absolute effects of each panel to circle
      and to name beside it.

  Returns:
    A figure for `save_figure`.

  Raises:
    ValueError: there is no panel.
  """
  check(len(panels) > 0, "panels", 0, "at least one", "pass a Panel")
  effects = [panel.mean_effect for panel in panels]
  # Never less than the linear width: noise must not look like a signal.
  limit = max(LINEAR_WIDTH, *(np.abs(effect).max() for effect in effects))
  with matplotlib.rc_context(STYLE):
    figure, axes, bar = _layout([effect.shape for effect in effects])
    for ax, panel, effect in zip(axes, panels, effects, strict=True):
      mesh = _draw_cells(ax, effect, limit)
      _mark_largest(ax, effect, circles)
      _write_title(ax, panel)
    axes[0].set_ylabel("layer")
    draw_colorbar(figure, mesh, bar, limit)
  return figure


def _layout(shapes) -> tuple[Figure, list[Axes], Axes]:
  """Axes for maps of `(layers, heads)`, and one for the colour bar."""
  left, right, top, bottom, names = 0.65, 1.0, 0.8, 0.6, 1.45
  height = np.clip(0.36 * max(layers for layers, _ in shapes), 2.6, 5.6)
  widths = [
    np.clip(heads * min(0.36, 1.7 * height / layers), 1.4, 7.0)
    for layers, heads in shapes
  ]
  bar_width = 0.14
  size = (
    left + sum(widths) + names * len(shapes) + bar_width + right,
    top + height + bottom,
  )
  figure = Figure(figsize=size, facecolor="white")

  def place(x, width):
    box = (x / size[0], bottom / size[1], width / size[0], height / size[1])
    return figure.add_axes(box)

  axes, x = [], left
  for width in widths:
    axes.append(place(x, width))
    x += width + names
  return figure, axes, place(x, bar_width)


def _write_title(ax: Axes, panel: Panel) -> None:
  """Title and base, the title small enough to end before the next map."""
  room = ax.get_window_extent().width / ax.figure.dpi + 1.2
  size = min(13, 72 * room / (0.7 * max(len(panel.title), 1)))
  ax.set_title(panel.title, loc="left", pad=22, weight="bold", size=size)
  ax.annotate(
    panel.about,
    (0, 1),
    (0, 8),
    "axes fraction",
    "offset points",
    color=FAINT,
  )


def _draw_cells(ax: Axes, effect: np.ndarray, limit: float):
  """Cells as vectors, so that a PDF stays sharp at any size."""
  reach = asinh_colour(limit)
  mesh = ax.pcolormesh(
    asinh_colour(effect),
    cmap=COLOURS,
    vmin=-reach,
    vmax=reach,
    edgecolors="white",
    linewidth=0.7,
  )
  for axis, count in ((ax.yaxis, effect.shape[0]), (ax.xaxis, effect.shape[1])):
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100) if count <= 16 * s)
    shown = np.arange(0, count, step)
    axis.set_ticks(shown + 0.5, [str(i) for i in shown])
  ax.tick_params(length=0)
  ax.spines[:].set_visible(False)
  ax.set_xlabel("head")
  return mesh


def _mark_largest(ax: Axes, effect: np.ndarray, circles: int) -> None:
  """Circles the largest effects and names them in the margin."""
  order = np.argsort(-np.abs(effect), axis=None, kind="stable")[:circles]
  order = [flat for flat in order if effect.flat[flat]]
  layers, heads = np.unravel_index(np.sort(order).astype(int), effect.shape)
  box = ax.get_window_extent()
  inches = np.array([box.width, box.height]) / ax.figure.dpi
  cell = inches / effect.shape[::-1]
  # Around flat cells, but within square and tall ones: neighbours must not
  # cross, and the numbers of the layers stay free.
  ring = 72 * np.clip(min(1.2 * cell.min(), 0.95 * cell[0]), 0.17, 0.45)
  for colour, width in (("white", 2.8), (INK, 1.4)):
    ax.scatter(
      heads + 0.5,
      layers + 0.5,
      s=ring**2,
      facecolors="none",
      edgecolors=colour,
      linewidths=width,
      clip_on=False,
      zorder=3,
    )
  heights = _spread(layers + 0.5, 0.2 / cell[1], 0.5, effect.shape[0] - 0.5)
  for layer, head, height in zip(layers, heads, heights, strict=True):
    ax.annotate(
      f"L{layer}H{head}  {effect[layer, head]:+.2f}".replace("-", "\u2212"),
      (effect.shape[1], layer + 0.5),
      (effect.shape[1] + 0.22 / cell[0], height),
      va="center",
      annotation_clip=False,
      # To the beginning of the name, not through others to its middle.
      arrowprops={
        "arrowstyle": "-",
        "color": FAINT,
        "linewidth": 0.7,
        "relpos": (0, 0.5),
      },
    )


def _spread(
  wanted: np.ndarray, gap: float, low: float, high: float
) -> np.ndarray:
  """Moves ascending heights as little as needed to be `gap` apart."""
  last = len(wanted) - 1
  gap = min(gap, (high - low) / max(last, 1))
  slots = gap * np.arange(len(wanted))
  free = np.asarray(wanted, float) - slots
  upward = np.maximum.accumulate(free)
  downward = np.minimum.accumulate(free[::-1])[::-1]
  return np.clip((upward + downward) / 2, low, high - gap * last) + slots


def save_figure(figure: Figure, path: str | os.PathLike) -> list[pathlib.Path]:
  """Writes a figure as PNG and as PDF, each whole or not at all.

  The same figure gives the same bytes: no date and no version is written.

  Args:
    figure: the figure.
    path: where to, without a suffix.

  Returns:
    The two files.
  """
  silent = {
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
  }
  paths = []
  for suffix, metadata in silent.items():
    paths.append(pathlib.Path(f"{os.fspath(path)}{suffix}"))
    with matplotlib.rc_context(STYLE), atomic(paths[-1]) as part:
      figure.savefig(part, dpi=200, metadata=metadata)
  return paths
