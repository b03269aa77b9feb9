"""Are lanes, top heads, halves and curves read off the effects rightly?"""

import json

import numpy as np
import pytest
import xarray as xr
from saved_effects import saved

from headjax.statistics import lane_score
from headjax.statistics import lanes as lane_test
from headjax.studies.exclusivity import lanes


def planted(index=2, layers=4, heads=8, noise=0.01):
  e = np.random.default_rng(0).random((layers, heads)) * noise
  e[:, index] += 1 + np.arange(layers)
  return e


def test_a_planted_lane_is_a_row():
  other = -planted()
  other[3, 2] = 1.0
  row = lanes.summarise(saved(planted()), saved(other), n_tasks=3, draws=500)
  wanted = lane_test(saved(planted()).effect, draws=500, n_tasks=3)
  assert row["Lambda"] == wanted.value > 0.95
  assert (row["p"], row["p_corrected"]) == (wanted.p, wanted.p_corrected)
  assert row["p_corrected"] == pytest.approx(3 * row["p"])
  assert row["top_heads"] == "L3H2 L2H2 L1H2"
  assert (row["same_index"], row["confirmed"]) == (3, 1)
  # The evaluation split has one head in common, and others of no effect.
  chosen = np.argsort(-other, axis=None, kind="stable")[:3]
  common = {(i // 8, i % 8) for i in chosen} & {(3, 2), (2, 2), (1, 2)}
  assert row["agreement"] == len(common) == 1
  assert row["chance"] == 1 / 8


def test_top_heads_of_different_indices_repeat_none():
  e = np.zeros((3, 4))
  e[[0, 1, 2], [1, 2, 3]] = [1.0, 2.0, 3.0]
  row = lanes.summarise(saved(e), saved(e), n_tasks=1, draws=50)
  assert row["top_heads"] == "L2H3 L1H2 L0H1"
  assert (row["same_index"], row["confirmed"], row["agreement"]) == (1, 3, 3)


def test_heat_maps_have_a_row_a_head():
  first, second = np.random.default_rng(1).normal(size=(2, 5, 2, 3))
  rows = lanes.heads(saved(first), saved(second))
  assert len(rows) == 6
  assert rows[4] == {
    "layer": 1,
    "head": 1,
    "discovery": pytest.approx(first[:, 1, 1].mean()),
    "evaluation": pytest.approx(second[:, 1, 1].mean()),
  }


def test_even_indices_are_the_shared_ones():
  config = json.dumps({"write": {"kind": "half_shared"}})
  data = saved(planted(index=2), model_config=config)
  row = lanes.halves(data, draws=200)
  assert row["half_shared"] == 1 and row["chance"] == 0.25
  e = planted(index=2)
  assert row["shared"] == pytest.approx(float(lane_score(e[:, ::2])))
  assert row["rotating"] == pytest.approx(float(lane_score(e[:, 1::2])))
  odd = lanes.halves(saved(planted(index=3)), draws=200)
  assert odd["half_shared"] == 0 and odd["difference"] < 0


def test_a_curve_has_a_row_a_checkpoint():
  steps = {0: planted(noise=5.0), 100: planted()}
  parts = [
    saved(e, base) for e, base in zip(
      steps.values(), ([1.0, -3.0], [1.0, 3.0]), strict=True
    )
  ]  # fmt: skip
  series = xr.concat(parts, dim="step").assign_coords(step=list(steps))
  series.attrs = parts[0].attrs | {"model": "mine"}
  rows = lanes.curve(series, draws=50)
  assert [row["step"] for row in rows] == [0, 100]
  assert [row["accuracy"] for row in rows] == [0.5, 1.0]
  assert [row["margin"] for row in rows] == [-1.0, 2.0]
  for row, e in zip(rows, steps.values(), strict=True):
    assert row["Lambda"] == pytest.approx(float(lane_score(e)))
