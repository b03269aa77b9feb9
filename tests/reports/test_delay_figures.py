"""Are delays drawn where they are, and the law through them?"""

import numpy as np
import pytest

from headjax.reports.delay_figures import delay_figure
from headjax.reports.figures import save_figure

FIELD = "weight_decay"
RUNS = [
  {FIELD: x, "delay": y}
  for x, y in ((0.5, 800.0), (0.5, float("inf")), (1.0, 400.0), (2.0, 200.0))
]
POINTS = [
  {FIELD: 0.5, "delay": 800.0}, {FIELD: 1.0, "delay": 400.0},
  {FIELD: 2.0, "delay": 200.0}, {FIELD: 3.0, "delay": float("nan")},
]  # fmt: skip


def test_runs_medians_and_a_law_lie_where_they_are(tmp_path):
  figure = delay_figure(RUNS, POINTS, FIELD, exponent=-1.0)
  [ax] = figure.axes
  [dots] = ax.collections
  np.testing.assert_allclose(
    dots.get_offsets(), [[0.5, 800], [1, 400], [2, 200]]
  )
  median, law = ax.lines
  np.testing.assert_allclose(median.get_xydata(), dots.get_offsets())
  np.testing.assert_allclose(law.get_ydata(), [800, 400, 200])
  assert [t.get_text() for t in ax.get_xticklabels()] == ["0.5", "1", "2", "3"]
  paths = save_figure(figure, tmp_path / "figure")
  assert all(path.stat().st_size for path in paths)
  label = ax.yaxis.label.get_window_extent()
  assert 0 <= label.x0  # it is not cut off, nor do the ticks run into it
  assert all(label.x1 < t.get_window_extent().x0 for t in ax.get_yticklabels())


@pytest.mark.parametrize("points", [POINTS[:1], POINTS[3:]])
def test_one_point_or_none_has_no_law(points):
  [ax] = delay_figure(RUNS, points, FIELD).axes
  assert len(ax.lines) == 1
