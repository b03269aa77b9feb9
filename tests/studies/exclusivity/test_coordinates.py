"""Is the best layer patched, in three bases, and are shares told right?"""

import dataclasses

import numpy as np
import pytest
from helpers import GPT2, random_model, random_pairs
from one_line import refusal

from headjax import results
from headjax.geometry.designs import WriteDesign
from headjax.interventions.directions import patch_directions, rotation
from headjax.studies.exclusivity import coordinates

AXIS = dataclasses.replace(
  GPT2, d_head=4, d_key=None, write=WriteDesign("axis", 0.3)
)


def effects_at(layer):
  table = np.zeros((2, 3, 4))
  table[:, layer, 2] = 1
  return table


@pytest.fixture(scope="module")
def found():
  model, _ = random_model(AXIS, dtype="float32")
  pairs = random_pairs(AXIS, [6, 5, 6], [3, 1, 2])
  return coordinates.measure(model, pairs, effects_at(1)), model, pairs


def test_the_layer_of_the_largest_effect_is_patched_in_three_bases(
  found, tmp_path
):
  data, model, pairs = found
  assert data.attrs["patched_layer"] == 1
  basis = rotation(4, 4, coordinates.SEED)
  for kind, site, turned in [
    ("attn_out", "attn_out", None), ("z", "z", None), ("rotated", "z", basis),
  ]:  # fmt: skip
    one = patch_directions(model, pairs, 1, site=site, basis=turned)
    np.testing.assert_array_equal(data[kind], one.effect)
  # With writes along the axes, a coordinate is the same on both sides of W_O.
  np.testing.assert_allclose(data.attn_out, data.z, atol=1e-5)
  assert np.abs(data.z - data.rotated).max() > 1e-4
  results.save(data, tmp_path / "coordinates.nc")
  assert results.load(tmp_path / "coordinates.nc").identical(data)


def test_a_row_for_each_basis(found):
  data, *_ = found
  rows = coordinates.summarise(data, data, count=3, draws=50)
  assert [row["kind"] for row in rows] == list(coordinates.KINDS)
  mean = data.attn_out.values.mean(0)
  best = np.sort(mean)[::-1][:3].sum() / mean[mean > 0].sum()
  assert rows[0]["share"] == pytest.approx(best)
  assert rows[0]["p"] == pytest.approx(1 / 51)
  assert rows[0]["random_largest"] < best


def test_validation_ranks_and_evaluation_counts(found):
  data, *_ = found
  other = data.copy(deep=True)
  other["z"] = -data.z
  rows = coordinates.summarise(other, data, count=3, draws=50)
  mean = data.z.values.mean(0)
  worst = np.sort(mean)[:3].sum() / mean[mean > 0].sum()
  assert rows[1]["share"] == pytest.approx(worst)


def test_layers_chosen_differently_are_refused(found):
  data, *_ = found
  with refusal("evaluation", "layer 2", "layer 1"):
    coordinates.summarise(data, data.assign_attrs(patched_layer=2))


def test_ranges_are_over_models_within_a_task_and_a_basis():
  rows = [
    {"task": task, "kind": kind, "share": share}
    for task, kind, share in [
      ("sva", "z", 0.5), ("sva", "z", 0.2), ("quote", "z", 0.9),
      ("sva", "attn_out", 0.1), ("sva", "z", 0.4),
    ]
  ]  # fmt: skip
  first, second, third = coordinates.ranges(rows)
  assert first == {
    "task": "sva", "kind": "z", "models": 3, "smallest": 0.2, "largest": 0.5,
  }  # fmt: skip
  assert (second["task"], second["models"]) == ("quote", 1)
  assert (third["kind"], third["largest"]) == ("attn_out", 0.1)
