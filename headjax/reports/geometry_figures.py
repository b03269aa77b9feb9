"""How do the read and write spaces of a model's heads lie to each other?"""

from collections.abc import Mapping

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from headjax.reports.figures import FAINT, STYLE
from headjax.reports.kernel_maps import (
  draw_head,
  draw_indices,
  draw_pairs,
  draw_scale,
  kernel_colours,
)

BIN = 2  # degrees
KERNEL_TICKS = np.array([0, 1 / 64, 1 / 4, 1 / 2, 1])  # of the width


def write_figure(
  pk: np.ndarray, *, width: int, random: float, title: str, about: str
) -> Figure:
  """Write spaces with write spaces: all pairs, and by index across layers.

  Args:
    pk: `[layer, head, layer, head]`.
    width: the largest possible kernel, of a space with itself.
    random: the mean kernel of two random spaces.
    title: the model.
    about: a line about it.

  Returns:
    A figure for `save_figure`.

  Source: paper A, figure 1.
  """
  colours = kernel_colours(width)
  with matplotlib.rc_context(STYLE):
    figure = Figure(figsize=(10.4, 5.5))
    left, right, bar = (
      figure.add_axes(box)
      for box in (
        (0.055, 0.085, 0.4, 0.757),
        (0.51, 0.085, 0.4, 0.757),
        (0.922, 0.085, 0.014, 0.757),
      )
    )
    mesh = draw_pairs(left, pk, colours)
    left.set(xlabel="layer, and head within", ylabel="layer, and head within")
    left.set_title("every pair of heads", loc="left")
    draw_indices(right, across_layers(pk), colours)
    right.set_title("mean over all pairs of different layers", loc="left")
    draw_scale(mesh, bar, random, "PK", width * KERNEL_TICKS)
    draw_head(figure, f"{title}: where heads write", about)
  return figure


def read_figure(
  kernels: Mapping[str, Mapping[str, np.ndarray]],
  *,
  width: int,
  random: float,
  title: str,
  about: str,
) -> Figure:
  """What heads can read of the writes of earlier layers.

  Args:
    kernels: kind of read space (a row) -> input (a column) ->
      `[layer, head, layer, head]` of readers with writers.
    width: the largest possible kernel.
    random: the mean kernel of two random spaces.
    title: the model.
    about: a line about it.

  Returns:
    A figure for `save_figure`.
  """
  rows, columns = len(kernels), len(next(iter(kernels.values())))
  across, high = 3.1 * columns + 1.7, 3.35 * rows + 1.1
  colours = kernel_colours(width)
  with matplotlib.rc_context(STYLE):
    figure = Figure(figsize=(across, high))
    grid = figure.subplots(rows, columns, squeeze=False)
    low, top = 0.5 / high, 1 - 1.0 / high
    figure.subplots_adjust(
      0.6 / across, low, 1 - 1.1 / across, top, wspace=0.1, hspace=0.19
    )
    for axes, (kind, row) in zip(grid, kernels.items(), strict=True):
      for ax, (letter, pk) in zip(axes, row.items(), strict=True):
        mesh = draw_pairs(ax, of_earlier_layers(pk), colours)
        ax.set_title(f"{letter} reads, {kind}", loc="left")
      axes[0].set_ylabel("reading layer, and head within")
    for ax in grid[-1]:
      ax.set_xlabel("writing layer, and head within")
    bar = figure.add_axes((1 - 0.9 / across, low, 0.14 / across, top - low))
    draw_scale(mesh, bar, random, "PK", width * KERNEL_TICKS)
    draw_head(figure, f"{title}: what heads can read of earlier writes", about)
  return figure


def angle_figure(
  angles: Mapping[str, np.ndarray], *, title: str, about: str
) -> Figure:
  """Histograms of principal angles; the last one is the reference.

  Args:
    angles: label -> any shape, in radians; nan does not count.
    title: the model.
    about: a line about it.

  Returns:
    A figure for `save_figure`.
  """
  colours = ["#1f62a8", "#cf4a26", "#7a4fa3"][: len(angles) - 1] + [FAINT]
  with matplotlib.rc_context(STYLE):
    figure = Figure(figsize=(7.6, 4.4))
    ax = figure.add_axes((0.09, 0.13, 0.87, 0.68))
    for colour, (label, values) in zip(colours, angles.items(), strict=True):
      edges, share = angle_shares(values)
      ax.stairs(
        100 * share,
        edges,
        color=colour,
        linestyle="--" if colour == FAINT else "-",
        linewidth=1.8,
        baseline=None,
        label=label,
      )
    ax.set(xlim=(0, 90), ylim=(0, None), xticks=range(0, 91, 15))
    ax.set(xlabel="principal angle (degrees)", ylabel="share of angles (%)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.05, 1))
    draw_head(figure, f"{title}: angles between heads of two layers", about)
  return figure


def angle_shares(angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Edges of the bins, in degrees, and the share of the angles in each."""
  degrees = np.degrees(angles[np.isfinite(angles)])
  edges = np.arange(0, 90 + BIN, BIN)
  # pi / 2 may round to a little more than 90 degrees.
  count, _ = np.histogram(np.minimum(degrees, 90), edges)
  return edges, count / max(count.sum(), 1)


def across_layers(pk: np.ndarray) -> np.ndarray:
  """`[head, head]`: the mean over pairs of different layers."""
  different = ~np.eye(len(pk), dtype=bool)
  return np.moveaxis(pk, 2, 1)[different].mean(axis=0)


def of_earlier_layers(pk: np.ndarray) -> np.ndarray:
  """Readers `[layer, head, ...]` with writers of earlier layers, else nan."""
  earlier = np.tri(*pk.shape[::2], k=-1, dtype=bool)
  return np.where(earlier[:, None, :, None], pk, np.nan)
