"""Do the figures of a cell show the numbers that they are given?"""

import matplotlib.image
import numpy as np

from headjax.reports import writers_figures
from headjax.reports.figures import save_figure
from headjax.statistics.resampling import Interval

MEAN = np.array([[0.5, -0.1, 0.0], [0.02, -0.4, 0.01]])
ROWS = [
  {"head": head, "role": role, "direct": direct, "direct_low": direct - 0.04,
   "direct_high": direct + 0.02, "total": total}
  for head, role, direct, total in (
    ("L0.H0", "writer", 0.4, 0.5), ("L1.H1", "canceller", -0.3, -0.1),
    ("L0.H1", "weak", 0.01, 0.2), ("L1.H0", "undefined", float("nan"), 0.0),
  )
]  # fmt: skip


def drawn(figure, tmp_path):
  """The picture is written and is not blank."""
  png, _ = save_figure(figure, tmp_path / "figure")
  assert np.ptp(matplotlib.image.imread(png)[..., :3]) > 0.5
  return figure.axes[0]


def points(ax):
  """Label -> (x, y) of what is drawn under it."""
  handles, names = ax.get_legend_handles_labels()
  return {
    name: (handle[0] if isinstance(handle, tuple) else handle).get_xydata()
    for name, handle in zip(names, handles, strict=True)
  }


def test_every_head_is_drawn_once_under_its_role(tmp_path):
  ax = drawn(
    writers_figures.attribution_figure(MEAN, ROWS, title="t"), tmp_path
  )
  found = points(ax)
  assert found["writers"][:, 1].tolist() == [0.5]
  assert found["cancellers"][:, 1].tolist() == [-0.4]
  assert sorted(found["other candidates"][:, 1]) == [-0.1, 0.02]
  assert sorted(found["other heads"][:, 1]) == [0.0, 0.01]
  for layer, heads in enumerate(MEAN):
    for table in found.values():
      here = table[np.round(table[:, 0]) == layer, 1]
      assert np.isin(here, heads).all()


def test_shares_are_drawn_in_percent_with_their_intervals(tmp_path):
  ax = drawn(writers_figures.role_figure(ROWS, title="t"), tmp_path)
  found = points(ax)
  np.testing.assert_allclose(found["writers"], [[50, 40]])
  np.testing.assert_allclose(found["cancellers"], [[-10, -30]])
  [segment] = ax.containers[-1].lines[2][0].get_segments()
  np.testing.assert_allclose(segment, [[50, 36], [50, 42]])
  empty = drawn(writers_figures.role_figure(ROWS[3:], title="t"), tmp_path)
  assert "no pair has a swing" in [text.get_text() for text in empty.texts]


def test_heads_with_a_role_and_those_that_stand_out_are_named(tmp_path):
  def row(head, role, direct, total):
    return {"head": head, "role": role, "direct": direct, "total": total,
            "direct_low": direct, "direct_high": direct}  # fmt: skip

  others = [row(f"L2.H{i}", "weak", 0.02, i / 100) for i in range(12)]
  mine = [
    row("L1.H1", "writer", 0.06, 0.07),
    row("L1.H2", "canceller", -0.06, 0),
  ]
  far = row("L0.H0", "weak", 0.0, 0.9)
  ax = drawn(
    writers_figures.role_figure([*others, *mine, far], title="t"), tmp_path
  )
  names = [text.get_text() for text in ax.texts]
  assert {"L1.H1", "L1.H2", "L0.H0"} <= set(names) and len(names) == 8
  many = [row(f"L3.H{i}", "writer", 0.1 + i / 50, i / 20) for i in range(10)]
  ax = drawn(writers_figures.role_figure([*many, far], title="t"), tmp_path)
  assert sorted(t.get_text() for t in ax.texts) == [r["head"] for r in many]


def test_bars_are_the_changes_of_each_ablation(tmp_path):
  changes = {
    name: {
      "writers": Interval(-0.5, -0.6, -0.4),
      "cancellers": Interval(0.2, 0.1, 0.3),
      "both": Interval(size, size - 0.1, size + 0.1),
    }
    for name, size in (("zero", -0.3), ("mean", -0.2))
  }
  ax = drawn(writers_figures.lesion_figure(changes, title="t"), tmp_path)
  bars = [bar.get_height() for group in ax.containers for bar in group]
  assert sorted(bars) == [-0.5, -0.5, -0.3, -0.2, 0.2, 0.2]
  ends = [tuple(line.get_ydata()) for line in ax.lines]
  assert ends.count((-0.6, -0.4)) == 2
  names = [text.get_text() for text in ax.get_xticklabels()]
  assert names == ["zero ablation", "mean ablation"]
  assert ax.get_legend() and not ax.texts
  nothing = {"zero": dict.fromkeys(changes["zero"], Interval(0.0, 0.0, 0.0))}
  ax = drawn(writers_figures.lesion_figure(nothing, title="t"), tmp_path)
  assert ["no head has a role" in t.get_text() for t in ax.texts] == [True]
  assert ax.get_legend() is None


def test_attention_is_that_of_both_groups(tmp_path):
  rows = [
    {"source": "bos", "writers": 0.1, "cancellers": 0.7, "p_holm": 0.02},
    {"source": "demo_label", "writers": 0.6, "cancellers": 0.2, "p_holm": 1.0},
  ]
  ax = drawn(writers_figures.attention_figure(rows, title="t"), tmp_path)
  first, second = ([b.get_height() for b in group] for group in ax.containers)
  assert (first, second) == ([0.1, 0.6], [0.7, 0.2])
  assert "p = 0.02" in [text.get_text() for text in ax.texts]
