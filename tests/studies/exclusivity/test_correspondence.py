"""Are lanes estimated on one split and tested on the other?"""

import numpy as np
import pytest
from helpers import GPT2, random_model, random_pairs

from headjax import patch_heads, results
from headjax.interventions.writes import mean_writes
from headjax.statistics import lane_score, mean_effect
from headjax.statistics.correspondence import (
  cosines,
  effect_correlations,
  match_heads,
)
from headjax.studies.exclusivity import correspondence


@pytest.fixture(scope="module")
def found():
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, [6] * 8, [2, 1, 3, 4, 1, 2, 3, 0])
  effects = patch_heads(model, pairs)
  return correspondence.measure(model, pairs, effects), effects, model, pairs


def test_heads_are_matched_by_their_effects_and_by_their_writes(
  found, tmp_path
):
  data, effects, model, pairs = found
  for by, similarity in [
    ("effects", effect_correlations(effects.effect)),
    ("writes", cosines(mean_writes(model, pairs))),
  ]:
    one = data.sel(by=by)
    np.testing.assert_allclose(one.similarity, similarity, atol=1e-12)
    np.testing.assert_array_equal(one.lane, match_heads(similarity))
  results.save(data, tmp_path / "lanes.nc")
  assert results.load(tmp_path / "lanes.nc").identical(data)


def test_a_planted_lane_of_the_other_split_is_found(found):
  data, effects, *_ = found
  lane = data.lane.sel(by="writes").values
  planted = effects.copy(deep=True)
  planted["effect"] = effects.effect * 0 + (lane == 1)
  rows = correspondence.summarise(data, planted, draws=99)
  by = {row["by"]: row for row in rows}
  assert by["writes"]["Lambda"] == 1
  assert by["writes"]["p"] < 0.2  # one of 16 relabellings is as good
  index = lane_score(mean_effect(planted.effect.values))
  assert by["writes"]["by_index"] == by["effects"]["by_index"] == index


def test_matched_heads_are_more_alike_than_others(found):
  data, effects, *_ = found
  for row in correspondence.summarise(data, effects, draws=9):
    one = data.sel(by=row["by"])
    lane, similarity = one.lane.values, one.similarity.values
    matched, everything = [], []
    for l, h, m, j in np.ndindex(similarity.shape):  # noqa: E741
      if l != m:
        everything.append(similarity[l, h, m, j])
        if lane[l, h] == lane[m, j]:
          matched.append(similarity[l, h, m, j])
    assert row["similarity"] == pytest.approx(np.mean(matched))
    assert row["all"] == pytest.approx(np.mean(everything))
    assert row["similarity"] > row["all"]
