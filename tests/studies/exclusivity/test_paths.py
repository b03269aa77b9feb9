"""Are the clamps of the top heads what a loop of forwards gives?"""

import jax
import numpy as np
import pytest
import slow_clamps
import xarray as xr
from held_models import held_model
from helpers import GPT2, SCREENING, random_pairs

from headjax import results
from headjax.interventions import clamps
from headjax.studies.exclusivity import paths


@pytest.fixture
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def chosen(*heads, n_layers=3, n_heads=4):
  """Effects under which these heads are the top ones, in this order."""
  effects = np.zeros((1, n_layers, n_heads))
  for i, head in enumerate(heads):
    effects[(0, *head)] = 9 - i
  return effects


def made_up(effects, sources):
  """A dataset as of `measure`, with the same effect for each example.

  Args:
    effects: hold -> `[source]`.
    sources: (layer, head) each.
  """
  array = np.array(list(effects.values()), float)
  layers, heads = np.array(sources).T
  return xr.Dataset(
    {
      "effect": (
        ("example", "hold", "source"),
        np.stack([array - 1, array + 1]),
      )
    },
    {
      "hold": list(effects),
      "source_layer": ("source", layers),
      "source_head": ("source", heads),
    },
  )


SOURCES = [(0, 1), (1, 1), (1, 0)]
DATA = made_up(
  {
    "nothing": [4.0, 2.0, 0.04],
    "heads": [3.0, 2.0, 0.04],
    "mlps": [2.0, 2.5, 0.04],
    "everything": [1.5, 2.0, 0.04],
    "lane 0": [3.0, 1.5, 0.0],
    "lane 1": [4.0, 2.04, 0.0],
    "L0H1": [4.0, 2.0, 0.04],
    "L1H1": [1.0, 2.0, 0.04],
    "L1H0": [5.0, 2.0, 0.04],
  },
  SOURCES,
)


def test_single_clamps_by_hand():
  first, second = paths.pair_clamps(DATA)
  assert first == {
    "source_layer": 0, "source_head": 1, "layer": 1, "head": 1,
    "same_index": True, "effect": 4.0, "reduction": 0.75,
  }  # fmt: skip
  assert (second["head"], second["same_index"]) == (0, False)
  assert second["reduction"] == -0.25
  assert paths.pair_clamps(DATA, 1) == []


def test_part_clamps_by_hand_and_small_effects_give_no_ratio():
  rows = {
    (row["source_layer"], row["source_head"], row["clamped"]): row["reduction"]
    for row in paths.part_clamps(DATA)
  }
  assert rows[0, 1, "heads"] == 0.25
  assert rows[0, 1, "mlps"] == 0.5
  assert rows[1, 1, "mlps"] == -0.25
  assert np.isnan([rows[1, 0, part] for part in ("heads", "mlps")]).all()


def test_lane_clamps_by_hand():
  found = paths.lane_clamps(DATA)
  assert found["effect"] == pytest.approx(6.04)
  assert found["reduction"] == pytest.approx(1 - 4.5 / 6.04)
  assert found["control"] == found["largest_control"] == pytest.approx(0)


def test_splits_by_hand():
  rows = paths.splits(DATA)
  assert rows[0] == pytest.approx(
    {
      "source_layer": 0, "source_head": 1, "total": 4.0, "direct": 1.5,
      "interaction": 0.5, "relative": 0.125,
      "via_mlps_mlps_first": 1.5, "via_attention_mlps_first": 1.0,
      "via_mlps_heads_first": 2.0, "via_attention_heads_first": 0.5,
    }
  )  # fmt: skip
  assert rows[1]["relative"] == 0.25 and np.isnan(rows[2]["relative"])
  found = paths.summarise_splits(rows)
  assert found["cases"] == 3 and found["total"] == pytest.approx(6.04)
  assert found["direct_share"] == pytest.approx(3.54 / 6.04)
  assert found["interaction_share"] == pytest.approx(0)
  assert found["absolute_interaction_share"] == pytest.approx(1 / 6.04)
  assert found["median_relative"] == pytest.approx(0.1875)
  assert (found["above_20_percent"], found["above_50_percent"]) == (1, 0)
  assert found["via_mlps_heads_first_share"] == pytest.approx(1.5 / 6.04)


def test_measured_clamps_are_a_loop_of_forwards(x64, one_device, tmp_path):
  model, _ = held_model(GPT2)
  pairs = random_pairs(GPT2, [8, 8], [3, 2])
  tops = [(1, 2), (0, 3), (2, 3)]
  data = paths.measure(model, pairs, chosen(*tops), top=3)
  found = np.stack([data.source_layer, data.source_head], -1)
  assert found.tolist() == [list(head) for head in tops]
  assert data.hold.values.tolist() == [
    "nothing", "heads", "mlps", "everything", "lane 0", "lane 1", "lane 2",
    "lane 3", "L1H2", "L0H3", "L2H3",
  ]  # fmt: skip
  names = ["mlps", "lane 0", "L2H3"]
  holds = [
    clamps.later_mlps(GPT2), clamps.lane(GPT2), clamps.one_head(GPT2, 2, 3)
  ]  # fmt: skip
  slow = slow_clamps.effects(model, pairs, *holds)
  for name, want in zip(names, slow, strict=True):
    want = np.stack([want[head] for head in tops])
    np.testing.assert_allclose(
      data.effect.sel(hold=name).T, want, rtol=0, atol=1e-10
    )
  # The saved file gives the printed numbers.
  results.save(data, tmp_path / "paths.nc")
  again = results.load(tmp_path / "paths.nc")
  for function in (paths.splits, paths.pair_clamps, paths.lane_clamps):
    assert str(function(again)) == str(function(data))


def test_a_model_without_mlps_has_paths_too(x64, one_device):
  model, _ = held_model(SCREENING)
  pairs = random_pairs(SCREENING, [8, 8], [3, 2])
  data = paths.measure(model, pairs, chosen((0, 1), (1, 1)), top=2)
  for row in paths.splits(data):
    assert abs(row["interaction"]) < 1e-12
    assert row["via_mlps_mlps_first"] == pytest.approx(0, abs=1e-12)
