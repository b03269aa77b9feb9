import numpy as np

from headjax.reports.core_figures import Panel, line_figure, spectrum_figure
from headjax.reports.figures import save_figure


def test_lines_are_the_columns_and_their_mean(tmp_path):
  rows = [
    {"model": m, "x": x, "y": x * k, "z": None if x else 1.0}
    for m, k in (("a", 1), ("b", 3))
    for x in (0, 1, 2)
  ]
  panel = Panel(
    "t", "x", {"y": "why", "z": "zed"}, "x", "y", {"mark": 0.5}
  )  # fmt: skip
  figure = line_figure(rows, [panel], title="T", by="model")
  [ax] = figure.axes
  lines = [line.get_ydata() for line in ax.lines]
  np.testing.assert_array_equal(lines[:3], [[0, 1, 2], [0, 3, 6], [0, 2, 4]])
  assert np.isnan(lines[5][1:]).all()
  labels = [text.get_text() for text in ax.get_legend().get_texts()]
  assert labels == ["why", "zed", "mark"]
  paths = save_figure(figure, tmp_path / "figure")
  assert all(path.stat().st_size for path in paths)


def test_a_logarithmic_panel_has_such_axes():
  rows = [{"x": 1, "y": 10.0}, {"x": 10, "y": 1.0}]
  panel = Panel("t", "x", {"y": "y"}, "x", "y", log_x=True)
  [ax] = line_figure(rows, [panel], title="T").axes
  assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")


def test_eigenvalues_lie_where_they_are(tmp_path):
  found = {"m": np.array([0.7 + 0.2j, 0.7 - 0.2j])}
  figure = spectrum_figure(found, np.array([0.75 + 0.25j]), title="T")
  [ax] = figure.axes
  points = [c.get_offsets() for c in ax.collections]
  np.testing.assert_allclose(points[0], [[0.75, 0.25]])
  np.testing.assert_allclose(points[1], [[0.7, 0.2], [0.7, -0.2]])
