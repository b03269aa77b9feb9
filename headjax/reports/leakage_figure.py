"""How far does a patch reach what later heads read? Leakage against geometry.

Source: paper A, figure 2.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from headjax.reports.designs import ordered
from headjax.reports.figures import FAINT, INK, STYLE

Rows = Sequence[Mapping[str, Any]]
INPUTS = {"Q": "#cf4a26", "K": "#1f62a8", "V": "#3c8d5a", "G": "#8a5fb0"}
CELLS = 44


def leakage_figure(found: Sequence[xr.Dataset], pairs: Rows) -> Figure:
  """Measured leakage against its isotropic expectation, all pairs of heads.

  Args:
    found: results of the part `leakage`, of any runs and tasks.
    pairs: rows of the table `leakage-pairs`, which are drawn as dots.

  Returns:
    A figure for `save_figure`: a row a design, a column an input.
  """
  designs = ordered(data.attrs["design"] for data in found)
  letters = [x for x in INPUTS if any(x in d.input.values for d in found)]
  limits = 1.1 * np.max([_limits(data) for data in found], axis=0)
  with matplotlib.rc_context(STYLE):
    size = (2.35 * len(letters) + 1.75, 2.2 * len(designs) + 1.25)
    figure = Figure(figsize=size)
    grid = figure.subplots(
      len(designs), len(letters), sharex=True, sharey=True, squeeze=False
    )
    figure.subplots_adjust(
      left=1.15 / size[0], right=1 - 0.2 / size[0], bottom=0.5 / size[1],
      top=1 - 0.85 / size[1], wspace=0.1, hspace=0.14,
    )  # fmt: skip
    for line, design in zip(grid, designs, strict=True):
      mine = [d for d in found if d.attrs["design"] == design]
      dots = [row for row in pairs if row["design"] == design]
      for ax, letter in zip(line, letters, strict=True):
        _draw(
          ax, mine, [r for r in dots if r["input"] == letter], letter, limits
        )
      line[0].set_ylabel(f"{design}\n\nleakage L")
    for ax, letter in zip(grid[0], letters, strict=True):
      ax.set_title(f"into {letter}", loc="left", weight="bold")
    for ax in grid[-1]:
      ax.set_xlabel("isotropic expectation \u03c1")
    figure.text(
      0.12 / size[0], 1 - 0.28 / size[1], "Where do patches of heads leak?",
      size=12, weight="bold",
    )  # fmt: skip
    about = (
      "grey: all pairs of heads; dots: pairs of top heads; line: L = \u03c1"
    )
    figure.text(0.12 / size[0], 1 - 0.5 / size[1], about, color=FAINT)
  return figure


def _limits(data: xr.Dataset) -> tuple[float, float]:
  """Of both axes: a few of the largest leakages may lie beyond."""
  even, leaked = (
    x.values[np.isfinite(x.values)] for x in (data.isotropic, data.leakage)
  )
  return float(even.max()), float(np.quantile(leaked, 0.999))


def _draw(ax, found, dots: Rows, letter: str, limits: np.ndarray) -> None:
  points = [_pairs(data, letter) for data in found if letter in data.input]
  even, leaked = np.concatenate(points, axis=1)
  edges = [np.linspace(0, limit, CELLS + 1) for limit in limits]
  count, _, _ = np.histogram2d(even, np.minimum(leaked, limits[1]), edges)
  ax.pcolormesh(
    *edges, np.where(count.T > 0, count.T, np.nan), cmap="Greys",
    norm=LogNorm(0.3, max(count.max(), 3) * 3), rasterized=True,
  )  # fmt: skip
  ends = [0, limits.min()]
  ax.plot(ends, ends, color=INK, lw=0.8, ls=(0, (4, 3)))
  x = [row["leakage"] / row["ratio"] for row in dots]
  y = [min(row["leakage"], limits[1]) for row in dots]
  ax.plot(
    x, y, "o", ms=4.5, color=INPUTS[letter], mec="white", mew=0.5,
    clip_on=False,
  )  # fmt: skip
  ax.set(xlim=(0, limits[0]), ylim=(0, limits[1]))
  ax.locator_params(axis="x", nbins=3)
  ax.spines[["top", "right"]].set_visible(False)


def _pairs(data: xr.Dataset, letter: str) -> np.ndarray:
  """`[2, pair]`: expectation and leakage of all pairs that there are."""
  one = data.sel(input=letter)
  both = np.stack([one.isotropic.values.ravel(), one.leakage.values.ravel()])
  return both[:, np.isfinite(both).all(0)]
