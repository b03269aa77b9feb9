"""How is a projection kernel drawn? The parts of the geometry figures.

All kernels of a figure share one colour scale from 0 to the width of a head,
on which the value of two random spaces is marked; its root makes room for the
small ones.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize, PowerNorm
from matplotlib.figure import Figure

from headjax.reports.figures import FAINT, INK

KERNELS = LinearSegmentedColormap.from_list(
  "kernels", ["#f7f7f5", "#a9cbe4", "#4a8ec4", "#1f62a8", "#0b2c55"]
)
CELLS = {"edgecolors": "white", "linewidth": 0.7}
ABSENT = "#e3e5e8"  # pairs in which nothing can be read
MOST_NUMBERS = 16  # heads; more numbers in the cells could not be read


def kernel_colours(largest: float) -> Normalize:
  """The scale of colours for kernels, or shares, from 0 to `largest`."""
  return PowerNorm(0.5, vmin=0, vmax=largest)


def draw_pairs(ax: Axes, pk: np.ndarray, colours: Normalize) -> ScalarMappable:
  """All pairs of heads, head by head within layer by layer.

  Args:
    ax: where to draw.
    pk: `[layer, head, layer, head]`, the first pair of axes upwards; nan where
      there is nothing to read.
    colours: of the figure.
  """
  n_layers, n_heads = pk.shape[2:]
  ax.set_facecolor(ABSENT)
  mesh = ax.imshow(
    pk.reshape(pk.shape[0] * pk.shape[1], -1),
    cmap=KERNELS,
    norm=colours,
    origin="lower",
    extent=(0, n_layers, 0, len(pk)),
    interpolation="nearest",
    aspect="equal",
  )
  for axis, line, count in (
    (ax.xaxis, ax.axvline, n_layers),
    (ax.yaxis, ax.axhline, len(pk)),
  ):
    for edge in range(1, count):
      line(edge, color="white", linewidth=min(0.6, 7 / count))
    _number(axis, count)
  _bare(ax)
  return mesh


def draw_indices(ax: Axes, pk: np.ndarray, colours: Normalize) -> None:
  """`[head, head]` kernels, with their numbers where these can be read."""
  ax.pcolormesh(pk, cmap=KERNELS, norm=colours, **CELLS)
  ax.set_aspect("equal")
  if len(pk) <= MOST_NUMBERS:
    dark = colours(pk) > 0.55
    for (row, column), value in np.ndenumerate(pk):
      ax.text(
        column + 0.5,
        row + 0.5,
        f"{value:.0f}" if abs(value - round(value)) < 1e-3 else f"{value:.1f}",
        ha="center",
        va="center",
        fontsize=6.5,
        color="white" if dark[row, column] else INK,
      )
  number_cells(ax, pk.shape, "head", "head")


def number_cells(ax: Axes, shape, across: str, upwards: str) -> None:
  """Numbers and names the axes of a map of `[upwards, across]` cells."""
  _number(ax.yaxis, shape[0])
  _number(ax.xaxis, shape[1])
  ax.set_xlabel(across)
  ax.set_ylabel(upwards)
  _bare(ax)


def draw_scale(
  mesh: ScalarMappable,
  ax: Axes,
  random: float,
  label: str,
  ticks: Sequence[float],
) -> None:
  """The colour scale, with the value of two random spaces marked on it.

  Args:
    mesh: something drawn in the figure's colours.
    ax: where the scale goes.
    random: the value to mark.
    label: what the colours mean.
    ticks: values to write beside it.
  """
  bar = ax.figure.colorbar(mesh, cax=ax)
  bar.set_ticks(ticks, labels=[f"{tick:.3g}" for tick in ticks])
  bar.outline.set_visible(False)
  ax.set_title(label, size=10)
  ax.plot([0, 1], [random, random], color="#cf4a26", linewidth=1.6)
  ax.annotate(
    f"random\n{random:.3g}",
    (1, random),
    (6, 0),
    ax.get_yaxis_transform(),
    "offset points",
    color="#cf4a26",
    va="center",
    fontsize=8,
    annotation_clip=False,
  )


def draw_head(figure: Figure, title: str, about: str) -> None:
  """The title of a figure, and the line under it."""
  inches = figure.get_size_inches()
  left = 0.45 / inches[0]
  figure.text(
    left, 1 - 0.3 / inches[1], title, weight="bold", size=13, va="center"
  )
  figure.text(left, 1 - 0.54 / inches[1], about, color=FAINT, va="center")


def _number(axis, count: int) -> None:
  step = next(s for s in (1, 2, 5, 10, 20, 50, 100) if count <= 16 * s)
  shown: Sequence[int] = range(0, count, step)
  axis.set_ticks([i + 0.5 for i in shown], [str(i) for i in shown])


def _bare(ax: Axes) -> None:
  ax.tick_params(length=0)
  ax.spines[:].set_visible(False)
