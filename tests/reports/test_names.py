"""Do names beside points hide neither one another nor a point?"""

import itertools

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from headjax.reports.names import name_points


def axes(limit=1.0):
  figure = Figure(figsize=(5, 4))
  ax = figure.add_axes((0.1, 0.1, 0.8, 0.8))
  ax.set_xlim(0, limit)
  ax.set_ylim(0, limit)
  return ax


def boxes(ax):
  """Name -> its box in pixels, without the line that leads to it."""
  renderer = FigureCanvasAgg(ax.figure).get_renderer()
  ax.figure.draw(renderer)
  return {
    text.get_text(): Text.get_window_extent(text, renderer) for text in ax.texts
  }


def cluster(n):
  """Points nearer to each other than a name is wide."""
  return np.random.default_rng(0).uniform(0.45, 0.55, (n, 2))


@pytest.mark.parametrize("n", [2, 6, 12])
def test_names_of_a_cluster_do_not_overlap(n):
  ax, points = axes(), cluster(n)
  names = {f"L{i}.H{i}": tuple(point) for i, point in enumerate(points)}
  name_points(ax, names, points)
  found = boxes(ax)
  assert list(found) == list(names)
  for a, b in itertools.combinations(found.values(), 2):
    assert not a.overlaps(b)


def test_a_name_keeps_off_points_and_lines():
  ax = axes()
  points = np.array([[0.5, 0.5], [0.54, 0.5], [0.54, 0.54], [0.54, 0.46]])
  line = [0.46, 0.3, 0.46, 0.7]
  name_points(ax, {"L10.H10": (0.5, 0.5)}, points, [line])
  box = boxes(ax)["L10.H10"]
  for x, y in ax.transData.transform(points):
    assert not (box.x0 - 3 < x < box.x1 + 3 and box.y0 - 3 < y < box.y1 + 3)
  x = ax.transData.transform(line[:2])[0]
  assert not box.x0 < x < box.x1


def test_names_stay_inside():
  ax = axes()
  corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], float)
  name_points(
    ax, {f"L{i}.H0": tuple(p) for i, p in enumerate(corners)}, corners
  )
  assert len(ax.texts) == 4
  for box in boxes(ax).values():
    assert ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1
    assert ax.bbox.y0 <= box.y0 and box.y1 <= ax.bbox.y1


def test_the_first_come_first_and_what_has_no_place_is_left_out():
  ax = axes()
  names = {f"name{i}": (0.5, 0.5) for i in range(60)}
  name_points(ax, names, np.array([[0.5, 0.5]]))
  shown = [text.get_text() for text in ax.texts]
  assert shown[:4] == [f"name{i}" for i in range(4)] and len(shown) < 33


def test_a_lonely_name_stands_near_and_a_far_one_has_a_line():
  ax = axes()
  name_points(ax, {"one": (0.5, 0.5)}, np.array([[0.5, 0.5]]))
  assert ax.texts[0].arrow_patch is None
  crowd = 0.5 + np.random.default_rng(1).uniform(-0.05, 0.05, (80, 2))
  name_points(ax, {"two": (0.5, 0.5)}, crowd)
  assert ax.texts[1].arrow_patch is not None


def test_limits_are_those_of_what_was_drawn():
  ax = Figure(figsize=(5, 4)).add_subplot()
  ax.plot([0, 100], [0, 100], "o")
  name_points(ax, {"L0.H0": (100, 100)}, np.array([[0, 0], [100, 100]]))
  [box] = boxes(ax).values()
  distance = ax.transData.transform((100, 100)) - (box.x1, box.y1)
  assert np.abs(distance).max() < 30
