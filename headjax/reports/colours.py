"""Which colour has an effect? One scale for all figures of head effects."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

# Colours are linear below this effect and logarithmic above it, in logits.
LINEAR_WIDTH = 0.2
# Equal lightness steps on both sides, and blue against orange-red, so that the
# sign survives a projector and the common colour blindnesses.
COLOURS = LinearSegmentedColormap.from_list(
  "headjax",
  ["#0b2c55", "#1f62a8", "#7fb2d9", "#f7f7f5", "#f2a97c", "#cf4a26", "#6d1009"],
)


def asinh_colour(effect: np.ndarray) -> np.ndarray:
  """Where an effect in logits stands on the colour scale.

  Args:
    effect: any shape, in logits (nats).

  Returns:
    asinh(effect / 0.2), without a unit.

  Source: paper A, section 5.2.
  """
  return np.arcsinh(np.asarray(effect) / LINEAR_WIDTH)


def draw_colorbar(
  figure: Figure, mesh: ScalarMappable, ax: Axes, limit: float
) -> None:
  """Draws the colour scale, with ticks at effects that a reader can say.

  Args:
    figure: the figure that holds `mesh` and `ax`.
    mesh: cells drawn in `COLOURS` at `asinh_colour` of their effects.
    ax: where the scale goes.
    limit: the largest absolute effect on the scale, in logits (nats).
  """
  bar = figure.colorbar(mesh, cax=ax)
  ticks = colour_ticks(limit)
  labels = [f"{tick:g}".replace("-", "\u2212") for tick in ticks]
  bar.set_ticks(asinh_colour(ticks), labels=labels)
  bar.outline.set_visible(False)
  bar.set_label("effect of the head: clean \u2212 patched (logits)", labelpad=8)
  for text, height, offset, side in (
    ("helps", 1, 8, "bottom"),
    ("hurts", 0, -8, "top"),
  ):
    ax.annotate(
      text,
      (0, height),
      (0, offset),
      "axes fraction",
      "offset points",
      va=side,
      alpha=0.65,
    )


def colour_ticks(limit: float) -> np.ndarray:
  """Round effects, symmetric around 0, that do not crowd the colour bar.

  Args:
    limit: the largest absolute effect on the scale, in logits (nats).

  Returns:
    Ascending effects in logits (nats): 0 and plus or minus 1, 2 or 5 times
    powers of ten.
  """
  powers = 10.0 ** np.arange(np.floor(np.log10(limit)) - 1, np.log10(limit) + 1)
  rounds = np.outer(powers, [1, 2, 5]).ravel()
  spacing = 0.13 * asinh_colour(limit)
  kept = [0.0]
  for tick in rounds[rounds <= limit * (1 + 1e-9)][::-1]:
    nearest = np.abs(asinh_colour(tick) - asinh_colour(kept)).min()
    if nearest >= spacing:
      kept.append(tick)
  return np.sort([*kept, *(-tick for tick in kept if tick)])
