"""Are the datasets of the study those of its definitions?"""

import jax
import numpy as np
import oracle
import pytest
from helpers import GPT2, random_model, random_pairs
from one_line import refusal

from headjax.interventions.direct_logits import direct_logits
from headjax.studies.writers import measuring, paths
from headjax.studies.writers.discovery import discover

HEADS = [(0, 1), (2, 3), (1, 0)]


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def test_attributions_stand_beside_those_of_shuffled_labels():
  model, _ = random_model(GPT2, dtype="float32")
  sets = [random_pairs(GPT2, [6, 8, 5], [-1] * 3, seed) for seed in range(4)]
  found = measuring.attributions(model, sets[0], sets[1:])
  for i, pairs in enumerate(sets[1:]):
    alone = direct_logits(model, pairs).attribution
    np.testing.assert_array_equal(found.shuffled[i], alone)
  assert found.shuffled.dims == ("shuffle", "example", "layer", "head")
  assert found.attrs["forwards"] == 4
  result = discover(found.attribution, found.shuffled)
  assert result.candidates.all()  # 12 heads are fewer than 20
  with refusal("shuffled: got 2 prompts; expected 3"):
    measuring.attributions(model, sets[0], [sets[1].select(range(2))])
  with refusal("shuffled: got none"):
    measuring.attributions(model, sets[0], [])


def slow_paths(w, pairs):
  """Direct, total, clean and flipped, by plain forwards."""
  W_U = w["W_E"].T
  direct, total = np.zeros((2, len(pairs), len(HEADS)))
  clean, flipped = np.zeros((2, len(pairs)))
  for i, n in enumerate(pairs.lengths):

    def difference(logits, i=i):
      return logits[pairs.answer[i]] - logits[pairs.foil[i]]

    own, other = pairs.clean[i, :n], pairs.reference[i, :n]
    _, logits, acts = oracle.forward(GPT2, w, own)
    clean[i] = difference(logits[-1])
    resid, logits, theirs = oracle.forward(GPT2, w, other)
    flipped[i] = difference(logits[-1])
    for j, (layer, head) in enumerate(HEADS):
      z = acts["z"][layer][:, head]
      patched = oracle.forward(GPT2, w, other, z_patch={(layer, head): z})[1]
      total[i, j] = difference(patched[-1]) - flipped[i]
      change = (z[-1] - theirs["z"][layer][-1, head]) @ w["W_O"][layer, head]
      y = oracle._norm(
        GPT2, resid[-1] + change, w["final_norm_gain"], w["final_norm_bias"]
      )
      direct[i, j] = difference(y @ W_U) - flipped[i]
  return direct, total, clean, flipped


def test_a_clean_head_in_the_flip_moves_the_answer_towards_the_clean_one(x64):
  model, w = random_model(GPT2)
  pairs = random_pairs(GPT2, [6, 8, 3], [3, 5, 0])
  found = measuring.path_effects(model, pairs, HEADS)
  wanted = slow_paths(w, pairs)
  for name, values in zip(
    ("direct", "total", "clean", "flipped"), wanted, strict=True
  ):
    assert np.abs(values).max() > 1e-3
    np.testing.assert_allclose(found[name], values, atol=1e-9)
  assert (
    list(zip(found.source_layer.values, found.source_head.values, strict=True))
    == HEADS
  )
  assert found.direct.dims == ("example", "candidate")


def test_shares_of_an_untrained_model_are_told_and_no_crash(x64):
  model, _ = random_model(GPT2, scale=0.02)
  pairs = random_pairs(GPT2, [6, 8, 3], [3, 5, 0])
  found = measuring.path_effects(model, pairs, HEADS)
  result = paths.shares(
    found.direct, found.total, found.clean - found.flipped, draws=50
  )
  assert set(result.roles) == {"undefined"}
  assert "0 of 3 pairs" in result.doubt
