import itertools

import matplotlib
import matplotlib.image
import numpy as np
import pytest
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.text import Text

from headjax.reports.colours import COLOURS, asinh_colour, colour_ticks
from headjax.reports.figures import (
  Panel,
  _spread,
  head_heatmap,
  head_heatmaps,
  save_figure,
)

EFFECT = np.array([[0.0, 0.3, -0.1], [2.0, -0.25, 0.01]])


def maps(figure):
  return figure.axes[:-1]


def the(kind, ax):
  return [artist for artist in ax.collections if isinstance(artist, kind)]


def margin_names(ax):
  texts = [text.get_text() for text in ax.texts]
  return [text for text in texts if text.startswith("L")]


def test_colours_are_the_asinh_of_the_effects_symmetric_around_0():
  figure = head_heatmap(EFFECT, title="sva", base=1.0)
  [mesh] = the(QuadMesh, maps(figure)[0])
  closed_form = [
    [np.log(x / 0.2 + np.sqrt((x / 0.2) ** 2 + 1)) for x in row]
    for row in EFFECT
  ]
  np.testing.assert_allclose(mesh.get_array(), closed_form, atol=1e-12)
  np.testing.assert_allclose(mesh.get_clim(), [-np.arcsinh(10), np.arcsinh(10)])
  red, _, blue, _ = mesh.to_rgba(np.array([2.0]))[0]
  assert red > blue
  red, _, blue, _ = mesh.to_rgba(np.array([-2.0]))[0]
  assert red < blue


def test_layer_0_is_at_the_bottom_and_head_0_on_the_left():
  [ax] = maps(head_heatmap(EFFECT, title="sva", base=1.0))
  assert ax.get_ylim() == (0, 2)
  assert ax.get_xlim() == (0, 3)
  labels = [text.get_text() for text in ax.get_yticklabels()]
  assert labels == ["0", "1"]
  assert list(ax.get_yticks()) == [0.5, 1.5]


def test_circles_sit_on_the_largest_absolute_effects():
  [ax] = maps(head_heatmap(EFFECT, title="sva", base=1.0, circles=3))
  for circles in the(PathCollection, ax):
    places = {(y - 0.5, x - 0.5) for x, y in circles.get_offsets()}
    assert places == {(1, 0), (0, 1), (1, 1)}
  assert sorted(margin_names(ax)) == [
    "L0H1  +0.30",
    "L1H0  +2.00",
    "L1H1  \u22120.25",
  ]


@pytest.mark.parametrize("shape", [(4, 8), (30, 9), (12, 12)])
def test_circles_are_no_wider_than_a_cell(shape):
  [ax] = maps(head_heatmap(np.ones(shape), title="sva", base=1.0))
  cell = ax.get_window_extent().width / ax.figure.dpi / shape[1]
  for circles in the(PathCollection, ax):
    assert 72 * 0.5 * cell < np.sqrt(circles.get_sizes().max()) <= 72 * cell


def test_a_line_in_the_margin_ends_where_its_name_begins():
  effect = np.zeros((4, 8))
  effect[0, [1, 3, 5]] = 1.0
  [ax] = maps(head_heatmap(effect, title="sva", base=1.0, circles=3))
  ax.figure.draw_without_rendering()
  named = [text for text in ax.texts if text.arrow_patch is not None]
  assert len(named) == 3
  for text in named:
    line = text.arrow_patch
    x = line.get_transform().transform(line.get_path().vertices)[:, 0]
    assert x.max() <= Text.get_window_extent(text).x0 + 1


def test_heads_without_any_effect_are_not_circled():
  [ax] = maps(head_heatmap(np.zeros((2, 3)), title="sva", base=1.0))
  assert margin_names(ax) == []
  [ax] = maps(head_heatmap(np.eye(2), title="sva", base=1.0, circles=4))
  assert sorted(margin_names(ax)) == ["L0H0  +1.00", "L1H1  +1.00"]


def test_the_title_tells_the_base_and_the_prompts():
  effect = np.stack([EFFECT, 3 * EFFECT])
  [ax] = maps(head_heatmap(effect, title="sva", base=np.array([1.0, 2.5])))
  assert ax.get_title(loc="left") == "sva"
  assert "base logit difference 1.75, 2 prompts" in [
    text.get_text() for text in ax.texts
  ]
  [mesh] = the(QuadMesh, ax)
  np.testing.assert_allclose(mesh.get_array(), np.arcsinh(2 * EFFECT / 0.2))


def test_axes_and_colour_bar_are_labelled_with_real_logits():
  figure = head_heatmap(EFFECT, title="sva", base=1.0)
  [ax] = maps(figure)
  assert (ax.get_xlabel(), ax.get_ylabel()) == ("head", "layer")
  bar = figure.axes[-1]
  assert "logits" in bar.get_ylabel()
  ticks = [t.get_text().replace("\u2212", "-") for t in bar.get_yticklabels()]
  assert {"-1", "-0.2", "0", "0.2", "1"} <= set(ticks)
  np.testing.assert_allclose(
    bar.get_yticks(), np.arcsinh(np.array(ticks, float) / 0.2)
  )


def test_panels_share_one_colour_scale():
  panels = [Panel(EFFECT, "sva", 1.0), Panel(0.1 * EFFECT, "quote", 2.0)]
  figure = head_heatmaps(panels)
  limits = {the(QuadMesh, ax)[0].get_clim() for ax in maps(figure)}
  assert len(limits) == 1
  assert len(figure.axes) == 3


def test_noise_does_not_use_the_full_colours():
  [ax] = maps(head_heatmap(1e-3 * EFFECT, title="sva", base=1.0))
  np.testing.assert_allclose(the(QuadMesh, ax)[0].get_clim()[1], np.arcsinh(1))


@pytest.mark.parametrize("limit", [0.2, 0.37, 1.0, 3.6, 9.9, 40.0])
def test_colour_ticks_are_round_symmetric_and_apart(limit):
  ticks = colour_ticks(limit)
  np.testing.assert_array_equal(ticks, -ticks[::-1])
  assert 5 <= len(ticks) <= 13
  assert ticks.max() <= limit
  assert {f"{abs(tick):e}"[0] for tick in ticks} <= set("0125")
  gaps = np.diff(asinh_colour(ticks))
  assert gaps.min() >= 0.06 * asinh_colour(2 * limit)


def test_the_colour_map_is_light_in_the_middle_and_equally_dark_at_both_ends():
  luminance = COLOURS(np.linspace(0, 1, 7))[:, :3] @ [0.2126, 0.7152, 0.0722]
  assert (np.diff(luminance[:4]) > 0).all()
  assert (np.diff(luminance[3:]) < 0).all()
  assert luminance[3] > 0.95
  np.testing.assert_allclose(luminance, luminance[::-1], atol=0.1)


def test_names_in_the_margin_do_not_overlap_and_stay_inside():
  found = _spread(np.array([1.0, 1.0, 1.0, 5.0]), 1.0, 0.5, 9.5)
  np.testing.assert_allclose(found, [0.5, 1.5, 2.5, 5.0])
  found = _spread(np.array([4.0, 4.0]), 1.0, 0.5, 9.5)
  np.testing.assert_allclose(found, [3.5, 4.5])
  found = _spread(np.array([9.0, 9.5]), 1.0, 0.5, 9.5)
  np.testing.assert_allclose(found, [8.5, 9.5])
  assert _spread(np.array([]), 1.0, 0.5, 9.5).shape == (0,)


@pytest.mark.parametrize("shape", [(30, 9), (12, 12), (48, 25), (1, 1), (2, 3)])
def test_no_text_covers_another_or_leaves_the_page(shape):
  random = np.random.default_rng(0)
  panels = [
    Panel(random.normal(size=shape), "a long name of a task " * 3, 12.0)
  ] * 2
  figure = head_heatmaps(panels)
  figure.draw_without_rendering()
  texts = [text for ax in figure.axes for text in ax.texts]
  for ax in figure.axes:
    texts += [ax.yaxis.label, *ax.get_xticklabels(), *ax.get_yticklabels()]
    texts += [ax.xaxis.label, ax._left_title]
  # Of the text alone: an annotation would add its line to the margin.
  boxes = [Text.get_window_extent(t) for t in texts if t.get_text()]
  page = figure.bbox
  for box in boxes:
    assert page.x0 <= box.x0 <= box.x1 <= page.x1
    assert page.y0 <= box.y0 <= box.y1 <= page.y1
  for one, other in itertools.combinations(boxes, 2):
    assert not one.padded(-1).overlaps(other.padded(-1))


@pytest.mark.parametrize(
  "effect",
  [np.zeros(3), np.zeros((0, 2)), np.array([[np.nan]]), np.array([[np.inf]])],
)
def test_effects_that_cannot_be_drawn_are_refused(effect):
  with pytest.raises(ValueError, match="effect of 'sva'"):
    head_heatmap(effect, title="sva", base=1.0)


def test_no_panel_is_refused():
  with pytest.raises(ValueError, match="panels"):
    head_heatmaps([])


def test_saving_twice_gives_the_same_bytes(tmp_path):
  written = []
  for name in ("a", "b"):
    figure = head_heatmap(EFFECT, title="sva", base=1.0)
    paths = save_figure(figure, tmp_path / "folder" / f"{name}.v1")
    assert [path.name for path in paths] == [f"{name}.v1.png", f"{name}.v1.pdf"]
    written.append([path.read_bytes() for path in paths])
  assert written[0] == written[1]
  png, pdf = written[0]
  assert pdf.startswith(b"%PDF")
  for stamp in (b"atplotlib", b"CreationDate"):
    assert stamp not in png + pdf
  assert len(list((tmp_path / "folder").iterdir())) == 4
  image = matplotlib.image.imread(tmp_path / "folder" / "a.v1.png")
  assert image.shape[0] > 600


def test_drawing_leaves_the_callers_settings_alone():
  before = dict(matplotlib.rcParams)
  head_heatmap(EFFECT, title="sva", base=1.0)
  assert dict(matplotlib.rcParams) == before
