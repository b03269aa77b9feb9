"""Do the figures of the spectral study show what they are given?"""

import matplotlib.image
import numpy as np
from spectral_series import series

from headjax.reports import spectral_bars, spectral_figures, spectral_seeds
from headjax.reports.figures import save_figure
from headjax.studies.spectral import development, screen, tables, trajectory


def drawn(figure, tmp_path):
  """The picture is written and is not blank."""
  png, pdf = save_figure(figure, tmp_path / "figure")
  assert np.ptp(matplotlib.image.imread(png)[..., :3]) > 0.5
  assert pdf.stat().st_size > 1000
  return figure


def test_there_is_a_line_for_each_head(tmp_path):
  found = series()
  kinds = screen.classes(trajectory.last(found)).values
  ratio = found.ratio.sel(measure="entropy").values
  figure = spectral_figures.ratio_trajectories(
    found.step.values, ratio, kinds, title="t"
  )
  drawn(figure, tmp_path)
  lines = {tuple(line.get_ydata()) for line in figure.axes[0].lines}
  assert lines == {tuple(r) for r in ratio.reshape(5, 4).T}
  [legend] = figure.legends
  assert [t.get_text() for t in legend.get_texts()] == [
    "induction (2)", "first (1)", "unclassified (1)"
  ]  # fmt: skip


def test_bars_are_the_integrals_in_order(tmp_path):
  rows = trajectory.rows(series())
  figure = spectral_figures.integral_ranking(rows, title="t")
  drawn(figure, tmp_path)
  heights = [bar.get_height() for bar in figure.axes[0].patches]
  assert heights == [row["integral"] for row in rows]


def test_every_screen_has_a_map_and_counts_its_heads(tmp_path):
  values = screen.selectivity(series().isel(step=4))
  values = values.where(values.kind != "self")  # one that no row has
  figure = spectral_figures.selectivity_maps(
    values.values, values.kind.values.tolist(), title="t", threshold=50
  )
  drawn(figure, tmp_path)
  titles = [ax.get_title(loc="left") for ax in figure.axes[:6]]
  assert titles[:4] == [
    "induction: 2",
    "previous: 0",
    "duplicate: 0",
    "first: 1",
  ]


def test_bars_stand_beside_every_draw(tmp_path):
  roles = {
    "base": [0.8], "circuit": [0.1], "upper": [0.0], "random": [0.7, 0.6],
    "sweep": [0.75], "single": [0.5],
  }  # fmt: skip
  figure = spectral_bars.ablation_bars(
    {"induction": roles, "previous": roles},
    {"induction": "causal", "previous": "not causal"},
    title="t",
  )
  drawn(figure, tmp_path)
  ax = figure.axes[1]
  heights = [bar.get_height() for bar in ax.patches]
  np.testing.assert_allclose(heights, [0.8, 0.1, 0.65, 0.0])
  random, sweep = (line.get_ydata().tolist() for line in ax.lines)
  assert (random, sweep) == ([0.7, 0.6], [0.75])
  assert ax.get_title(loc="left") == "previous\nnot causal"


def test_recall_is_drawn_for_both_thresholds(tmp_path):
  made = tables.of_measurement(series())
  figure = spectral_bars.recall_curves(
    {"induction": made["recall_induction"]},
    development.class_shares(series()),
    title="t",
  )
  drawn(figure, tmp_path)
  upper, lower = figure.axes
  assert upper.lines[0].get_ydata().tolist() == [0, 0, 0, 0.5, 1]
  assert upper.lines[1].get_ydata().tolist() == [0, 0, 0.5, 1, 1]
  assert len(lower.lines) == 4


def test_every_circuit_is_told_of_in_every_model(tmp_path):
  drops = {("a", "a"): 0.75, ("a", "b"): 0.25, ("b", "a"): 0.0, ("b", "b"): 0.5}
  rows = [
    {
      "circuit": c, "model": m, "drop": drop, "random_mean": drop / 5,
      "verdict": "causal" if c == m == "a" else "not causal",
    }
    for (c, m), drop in drops.items()
  ]  # fmt: skip
  figure = drawn(spectral_seeds.seed_matrix(rows, title="t"), tmp_path)
  one, other = figure.axes[:2]
  assert [t.get_text() for t in one.texts] == ["0.75", "0.25", "0.00", "0.50"]
  assert [t.get_text() for t in other.texts] == ["0.15", "0.05", "0.00", "0.10"]
  [frame] = one.patches
  assert frame.get_xy() == (0, 0) and not other.patches
  assert [t.get_text() for t in one.get_xticklabels()] == ["a", "b"]
