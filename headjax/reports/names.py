"""Where do the names of points go, so that none hides another?"""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.textpath import TextPath

from headjax.reports.figures import FAINT, INK

_SIZE = 7  # of the text; like all lengths here in points, 1/72 inch
_MARKER = 3.0  # half the width of a point
_FAR = 9.0  # from here on a line leads from the point to its name
_DISTANCES = (4.0, 9.0, 16.0, 25.0)
_DIRECTIONS = np.deg2rad((45, 135, -45, -135, 0, 180, 90, -90))
# Around a name: what a glance needs to tell two of them apart.
_GAP = 1.0


def name_points(
  ax: Axes,
  names: Mapping[str, tuple[float, float]],
  points: np.ndarray,
  lines: np.ndarray | tuple = (),
) -> None:
  """Writes names beside points, the first ones first.

  No name covers another or leaves the axes; of the places that remain, it takes
  the one that crosses the fewest points and lines, and then the nearest. A name
  without such a place is left out.

  Args:
    ax: with everything drawn, and its limits or margins set.
    names: name -> the point (x, y) that it belongs to.
    points: `[point, (x, y)]`, all that are drawn.
    lines: `[line, (x0, y0, x1, y1)]`, upright or level, from below and left.
  """
  ax.autoscale_view()  # settles limits that are only asked for
  scale = 72 / ax.figure.dpi
  inside = np.array([-np.inf, -np.inf, np.inf, np.inf])
  (inside[:2], inside[2:]) = scale * ax.bbox.min, scale * ax.bbox.max
  drawn = _boxes(ax, points, lines, scale)
  taken = np.empty((0, 4))
  for name, point in names.items():
    middle = scale * ax.transData.transform(point)
    places = _places(name, middle)
    hidden = _crossings(places, taken) > 0
    outside = (places[:, :2] < inside[:2]) | (places[:, 2:] > inside[2:])
    free = ~hidden & ~outside.any(axis=1)
    if not free.any():
      continue
    cost = np.where(free, _crossings(places, drawn), np.inf)
    best = int(cost.argmin())
    taken = np.vstack([taken, places[best]])
    _write(ax, name, point, places[best] - np.tile(middle, 2))


def _places(name: str, middle: np.ndarray) -> np.ndarray:
  """`[place, (x0, y0, x1, y1)]` around a point, nearest first."""
  width, height = TextPath((0, 0), name, size=_SIZE).get_extents().size
  size = np.array([width, height]) + 2 * _GAP
  way = np.stack([np.cos(_DIRECTIONS), np.sin(_DIRECTIONS)], axis=-1)
  step = np.array(_DISTANCES)[:, None, None]
  # The near side of the box, not its middle, stands off the point.
  centre = middle + (way * step + np.sign(np.round(way, 9)) * size / 2)
  return np.concatenate([centre - size / 2, centre + size / 2], -1).reshape(
    -1, 4
  )


def _boxes(ax: Axes, points, lines, scale: float) -> np.ndarray:
  """`[box, (x0, y0, x1, y1)]` of the points, then of the lines."""

  def box(low, high, width):
    low, high = (scale * ax.transData.transform(xy) for xy in (low, high))
    return np.hstack([low - width, high + width])

  points = np.asarray(points, float).reshape(-1, 2)
  lines = np.asarray(lines, float).reshape(-1, 4)
  return np.vstack(
    [box(points, points, _MARKER), box(lines[:, :2], lines[:, 2:], _GAP)]
  )


def _crossings(places: np.ndarray, boxes: np.ndarray) -> np.ndarray:
  """`[place]`: how many boxes each overlaps."""
  a, b = places[:, None], boxes[None]
  apart = (a[..., :2] >= b[..., 2:]) | (b[..., :2] >= a[..., 2:])
  return (~apart.any(axis=-1)).sum(axis=1)


def _write(ax: Axes, name: str, point, box: np.ndarray) -> None:
  """The name in a box that is relative to its point."""
  far = np.abs(np.clip(0, box[:2], box[2:])).max() > _FAR
  line = {"arrowstyle": "-", "color": FAINT, "lw": 0.5, "shrinkB": _MARKER}
  ax.annotate(
    name, point, box[:2] + _GAP, "data", "offset points",
    fontsize=_SIZE, color=INK, arrowprops=line if far else None,
  )  # fmt: skip
