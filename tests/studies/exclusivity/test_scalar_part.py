"""Does the study compare the scalar part with edits of its own size?"""

import dataclasses

import numpy as np
import pytest
from helpers import GPT2, random_model, random_pairs
from one_line import refusal

from headjax import results
from headjax.geometry.designs import WriteDesign
from headjax.interventions.answers import logit_differences
from headjax.interventions.own_block import (
  random_orthogonal,
  scalars,
  without_scalar_part,
)
from headjax.models.decoder import run, unembed
from headjax.studies.exclusivity import scalar_part

AXIS = dataclasses.replace(
  GPT2, d_head=4, d_key=None, write=WriteDesign("axis", 0.3)
)


@pytest.mark.slow
def test_logit_differences_are_those_of_single_prompts(x64):
  model, _ = random_model(GPT2)
  pairs = random_pairs(GPT2, [6, 4, 5], [2, 1, 1])
  expected = []
  for i, n in enumerate(pairs.lengths):
    resid, _ = run(model.model, model.params, pairs.clean[i][None, :n])
    logits = np.asarray(unembed(model.model, model.params, resid))[0, -1]
    expected.append(logits[pairs.answer[i]] - logits[pairs.foil[i]])
  found = logit_differences(model, pairs, examples=2)
  np.testing.assert_allclose(found, expected, atol=1e-12)


def test_both_edits_are_measured_with_the_same_layers(tmp_path):
  model, _ = random_model(AXIS, dtype="float32")
  pairs = random_pairs(AXIS, [6, 5], [2, 1])
  found = scalar_part.measure(model, pairs, controls=2, seed=7)
  assert found.attrs["layers"] == "[1, 2]"
  edited = without_scalar_part(model, [1, 2])
  control = without_scalar_part(model, [1, 2], random_orthogonal(model, 8))
  for name, one in [("base", model), ("removed", edited)]:
    np.testing.assert_array_equal(found[name], logit_differences(one, pairs))
  np.testing.assert_array_equal(
    found.control[:, 1], logit_differences(control, pairs)
  )
  np.testing.assert_array_equal(found.scalar, scalars(model))
  results.save(found, tmp_path / "scalar.nc")
  assert results.load(tmp_path / "scalar.nc").identical(found)


def test_drops_are_clean_minus_edited():
  found = scalar_part.xr.Dataset(
    {
      "base": ("example", [3.0, 5.0]),
      "removed": ("example", [1.0, 2.0]),
      "control": (("example", "draw"), [[3.0, 2.0], [5.0, 3.0]]),
      "scalar": (("layer", "head"), [[-1.0, -3.0], [2.0, -1.0]]),
    }
  )
  assert scalar_part.summarise(found) == {
    "drop": 2.5,
    "control_drop": 0.75,
    "control_smallest": 0.0,
    "control_largest": 1.5,
    "worse": 1,
  }
  assert scalar_part.by_layer(found) == [
    {"layer": 0, "mean_scalar": -2.0, "negative": 2},
    {"layer": 1, "mean_scalar": 0.5, "negative": 1},
  ]
  swapped = found.assign(removed=("example", [3.0, 4.9]))
  assert scalar_part.summarise(swapped)["worse"] == 0


def test_other_models_and_no_control_are_refused():
  pairs = random_pairs(GPT2, [6, 5], [2, 1])
  model, _ = random_model(GPT2, dtype="float32")
  with refusal("model", "learned writes"):
    scalar_part.measure(model, pairs)
  model, _ = random_model(AXIS, dtype="float32")
  with refusal("controls", "0"):
    scalar_part.measure(model, pairs, controls=0)
