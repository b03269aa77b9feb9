"""Do the study's figures show the rows that they are given?"""

import matplotlib.image
import numpy as np
import pytest
import xarray as xr

from headjax.reports import designs
from headjax.reports.exclusivity_bars import (
  design_bars,
  half_figure,
  loss_figure,
)
from headjax.reports.exclusivity_curves import training_curves
from headjax.reports.exclusivity_maps import effect_grid
from headjax.reports.figures import save_figure
from headjax.reports.leakage_figure import leakage_figure
from headjax.reports.path_figures import PATHS, clamp_figure, path_figure
from headjax.reports.rows import cell, save_rows, text_table

DESIGNS = ("write-rotated@tiny", "learned@tiny", "half-shared@tiny")


def rows(**columns):
  """Rows of three designs, two seeds, two tasks."""
  random = np.random.default_rng(0)
  return [
    {"run": f"{design}-{seed}", "design": design, "seed": seed, "task": task}
    | {name: make(random) for name, make in columns.items()}
    for design in DESIGNS
    for seed in (0, 1)
    for task in ("quote", "sva")
  ]


def drawn(figure, tmp_path):
  """The picture is written and is not blank."""
  png, pdf = save_figure(figure, tmp_path / "figure")
  assert np.ptp(matplotlib.image.imread(png)[..., :3]) > 0.5
  assert pdf.stat().st_size > 1000
  return figure


def test_bars_are_means_over_runs_in_the_order_of_designs(tmp_path):
  table = rows(neff=lambda r: float(r.uniform(2, 9)))
  table[0]["neff"] = float("nan")
  figure = design_bars(
    table, "neff", title="t", about="a", label="heads", chance=3.0
  )
  drawn(figure, tmp_path)
  sva, quote = figure.axes
  assert [ax.get_title(loc="left") for ax in (sva, quote)] == ["sva", "quote"]
  names = [text.get_text() for text in sva.get_yticklabels()]
  assert names == ["learned@tiny", "half-shared@tiny", "write-rotated@tiny"]
  widths = [bar.get_width() for bar in quote.patches]
  for name, width in zip(names, widths, strict=True):
    here = [
      r["neff"] for r in table if (r["design"], r["task"]) == (name, "quote")
    ]
    assert width == pytest.approx(np.nanmean(here))


def test_a_design_without_a_value_says_so(tmp_path):
  table = rows(Lambda=lambda r: float("nan"))
  figure = drawn(
    design_bars(table, "Lambda", title="t", about="a", label="x"), tmp_path
  )
  texts = [text.get_text().strip() for text in figure.axes[0].texts]
  assert texts.count("no value") == 3


def test_halves_losses_and_curves_are_drawn(tmp_path):
  uniform = {n: (lambda r: float(r.random())) for n in ("shared", "rotating")}
  drawn(half_figure(rows(**uniform), chance=0.25), tmp_path)
  losses = rows(
    neff=lambda r: float(r.uniform(2, 9)),
    validation_loss=lambda r: float(r.random()),
  )
  figure = drawn(loss_figure(losses, losses), tmp_path)
  assert len(figure.axes[0].lines) == 3
  curves = [
    row | {"step": step, "accuracy": step / 200, "Lambda": row["x"] * step}
    for row in rows(x=lambda r: float(r.random()))
    for step in (0, 100, 200)
  ]
  curves[0]["Lambda"] = float("nan")
  figure = drawn(
    training_curves(
      curves, {"accuracy": "a", "Lambda": "b"}, title="t", chance={"Lambda": 3}
    ),
    tmp_path,
  )
  assert len(figure.axes) == 4
  thick = [line for line in figure.axes[0].lines if line.get_linewidth() > 1]
  assert len(thick) == 3
  np.testing.assert_allclose(thick[0].get_ydata(), [0, 0.5, 1])


def test_long_names_stay_inside_the_figure(tmp_path):
  name = "write-common-axis-block-norm-3456@relay"
  one = [{"run": "r", "design": name, "neff": 2.0, "validation_loss": 1.0}]
  figure = drawn(loss_figure(one, one), tmp_path)
  legend = figure.axes[0].get_legend().get_window_extent()
  assert legend.x1 <= figure.bbox.x1


def test_heat_maps_show_the_first_run_of_each_design(tmp_path):
  table = [
    row | {"layer": layer, "head": head, "discovery": float(layer * head)}
    for row in rows()
    for layer in range(2)
    for head in range(3)
  ]
  scores = rows(Lambda=lambda r: 0.5, p=lambda r: 0.01)
  figure = drawn(effect_grid(table, scores), tmp_path)
  maps = [ax for ax in figure.axes if ax.get_ylabel() != ""]
  labels = [ax.get_ylabel().split("\n")[0] for ax in maps][:3]
  assert labels == ["learned@tiny", "half-shared@tiny", "write-rotated@tiny"]
  texts = [text.get_text() for ax in figure.axes for text in ax.texts]
  assert texts.count("\u039b = 0.50, p = 0.01") == 6


def leaked(design):
  random = np.random.default_rng(1)
  shape = (2, 3, 2, 3, 2)
  even = random.uniform(0.05, 0.2, shape)
  even[:, 1:, :, 0] = np.nan
  dims = ("input", "source_layer", "source_head", "layer", "head")
  return xr.Dataset(
    {"isotropic": (dims, even), "leakage": (dims, even * 1.1)},
    {"input": ["Q", "V"]},
    attrs={"design": design},
  )


def test_leakage_has_a_row_a_design_and_a_column_an_input(tmp_path):
  dots = [
    {"design": "learned", "input": "Q", "leakage": 0.15, "ratio": 1.5},
    {"design": "learned", "input": "V", "leakage": 9.0, "ratio": 90.0},
  ]
  found = [leaked("learned"), leaked("write-common")]
  figure = drawn(leakage_figure(found, dots), tmp_path)
  assert len(figure.axes) == 4
  titles = [ax.get_title(loc="left") for ax in figure.axes[:2]]
  assert titles == ["into Q", "into V"]
  [dot] = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
  np.testing.assert_allclose(dot.get_xydata(), [[0.1, 0.15]])


def test_parts_of_a_path_add_up_to_the_total(tmp_path):
  shares = dict(
    zip([name for name, _ in PATHS.values()], (0.5, 0.7, -0.2), strict=True)
  )
  table = [row | shares for row in rows(total=lambda r: 4.0)]
  figure = drawn(path_figure(table), tmp_path)
  widths = [bar.get_width() for bar in figure.axes[0].patches]
  assert sum(widths) == pytest.approx(3 * 4.0)
  starts = [bar.get_x() for bar in figure.axes[0].patches[:3]]
  np.testing.assert_allclose(starts, [0, 2.0, 0])


def test_a_design_without_a_task_leaves_its_place_empty(tmp_path):
  table = [
    row | {"clamped": "heads", "reduction": 0.5}
    for row in rows()
    if (row["design"], row["task"]) != ("learned@tiny", "sva")
  ]
  sva, quote = clamp_figure(table).axes
  heights = [y for line in sva.lines[:-1] for y in line.get_ydata()]
  assert {round(y) for y in heights} == {1, 2}
  heights = [y for line in quote.lines[:-1] for y in line.get_ydata()]
  assert {round(y) for y in heights} == {0, 1, 2}


def test_clamps_beyond_the_edge_stay_in_the_picture(tmp_path):
  table = [
    row | {"clamped": part, "reduction": value}
    for row in rows()
    for part, value in (("heads", 9.0), ("mlps", 0.5), ("everything", np.nan))
  ]
  figure = drawn(clamp_figure(table), tmp_path)
  x = np.concatenate([line.get_xdata() for line in figure.axes[0].lines[:3]])
  assert np.nanmax(x) == 1.5


def test_families_stand_together_in_one_colour():
  given = ["all-rotated", "write-common", "learned", "zeta"]
  wanted = ["learned", "write-common", "all-rotated", "zeta"]
  assert designs.ordered(given) == wanted
  assert designs.colour("write-common-axis@tiny") == designs.colour("mlp3456")
  assert designs.colour("write-rotated") != designs.colour("write-common")


def test_tables_keep_every_column_and_write_nothing_for_nothing(tmp_path):
  table = [{"a": 1.23456789, "b": "x"}, {"a": None, "c": float("nan"), "d": 3}]
  save_rows(table, tmp_path / "t.csv")
  assert (tmp_path / "t.csv").read_text() == "a,b,c,d\n1.23457,x,,\n,,,3\n"
  assert cell(True) == "True"
  lines = text_table(table, ("a", "b")).splitlines()
  assert lines == ["a     b", "1.23  x", "-     -"]
