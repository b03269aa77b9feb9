"""Which heads read what they write, and are a layer's writes conserved?"""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headjax.reports.colours import COLOURS
from headjax.reports.figures import STYLE
from headjax.reports.kernel_maps import (
  CELLS,
  KERNELS,
  draw_head,
  draw_scale,
  kernel_colours,
  number_cells,
)

SMALLEST_EXCESS = 0.05  # rounding must not look like a signal
TICKS = (0, 0.01, 0.25, 0.5, 1)


def alignment_figure(
  own: np.ndarray,
  best: np.ndarray,
  excess: np.ndarray,
  *,
  random: float,
  title: str,
  about: str,
) -> Figure:
  """Self-alignment of every head, and conservation between all layers.

  Args:
    own: `[layer, head]` rho of the values' read space and the own write space.
    best: `[layer, head]` bool, whether it is the largest of its layer.
    excess: `[layer, head, layer]` of readers with writers, a share of the
      reader's dimension; the largest of a layer's readers is shown.
    random: rho of two random spaces.
    title: the model.
    about: a line about it.

  Returns:
    A figure for `save_figure`.

  Source: paper A, figure 7 and proposition 1.
  """
  with matplotlib.rc_context(STYLE):
    figure = Figure(figsize=(10.4, 5.2))
    left, left_bar, right, right_bar = (
      figure.add_axes((x, 0.095, width, 0.69))
      for x, width in ((0.055, 0.355), (0.42, 0.013))
      + ((0.57, 0.355), (0.935, 0.013))
    )
    _draw_own(left, left_bar, own, best, random)
    _draw_excess(right, right_bar, excess)
    draw_head(figure, f"{title}: self-alignment and conservation", about)
  return figure


def _draw_own(ax: Axes, bar: Axes, own, best, random: float) -> None:
  """The map of rho, with a dot on every head that reads itself most."""
  mesh = ax.pcolormesh(own, cmap=KERNELS, norm=kernel_colours(1), **CELLS)
  layers, heads = np.nonzero(best)
  ax.plot(heads + 0.5, layers + 0.5, "o", color="#cf4a26", ms=5, mec="w")
  ax.set_title(
    f"\u03c1 of what V reads with what the head writes: mean {own.mean():.2f}\n"
    f"dots: no head of the layer writes more of it ({best.mean():.0%})",
    loc="left",
    size=10,
  )
  number_cells(ax, own.shape, "head", "layer")
  draw_scale(mesh, bar, random, "\u03c1", TICKS)


def _draw_excess(ax: Axes, bar: Axes, excess) -> None:
  """The map of what is not conserved, with its sign."""
  chosen = np.abs(excess).argmax(axis=1, keepdims=True)
  largest = np.take_along_axis(excess, chosen, axis=1)[:, 0]
  limit = max(SMALLEST_EXCESS, np.abs(largest).max())
  mesh = ax.pcolormesh(largest, cmap=COLOURS, vmin=-limit, vmax=limit, **CELLS)
  ax.set_title(
    "PK of V with all heads of a layer, over V's dimension, less 1\n"
    f"at most {np.abs(largest).max():.2g}; 0 where writes are conserved",
    loc="left",
    size=10,
  )
  number_cells(ax, largest.shape, "writing layer", "reading layer")
  scale = ax.figure.colorbar(mesh, cax=bar)
  scale.outline.set_visible(False)
