"""Is a head's mean output put at the last token, and nowhere else?"""

import jax
import numpy as np
import oracle
import pytest
from helpers import FAMILIES, random_model, random_pairs
from one_line import refusal

from headjax.interventions.mean_patching import (
  answer_outputs,
  indirect_effects,
  ranked,
)

LENGTHS = [6, 8, 3]


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def probability(logits, token):
  e = np.exp(logits - logits.max())
  return e[token] / e.sum()


@pytest.mark.parametrize(
  "name", ["gpt2", pytest.param("llama_kv2", marks=pytest.mark.slow)]
)
def test_effects_are_those_of_single_forwards(x64, name):
  config = FAMILIES[name]
  model, w = random_model(config)
  pairs = random_pairs(config, LENGTHS, [-1] * 3)
  source = random_pairs(config, [5, 7], [-1] * 2, seed=5)
  means = answer_outputs(model, source)
  slow = np.mean(
    [
      [z[-1] for z in oracle.forward(config, w, source.clean[i, :n])[2]["z"]]
      for i, n in enumerate(source.lengths)
    ],
    axis=0,
  )
  np.testing.assert_allclose(means, slow, atol=1e-6)
  found = indirect_effects(model, pairs, means, examples=2)
  for i, n in enumerate(pairs.lengths):
    tokens, answer = pairs.clean[i, :n], pairs.answer[i]
    _, logits, acts = oracle.forward(config, w, tokens)
    before = probability(logits[-1], answer)
    assert found.base.values[i] == pytest.approx(before, abs=1e-9)
    for layer, head in np.ndindex(config.n_layers, config.n_heads):
      z = acts["z"][layer][:, head].copy()
      z[-1] = means[layer, head]
      patched = oracle.forward(config, w, tokens, z_patch={(layer, head): z})
      wanted = probability(patched[1][-1], answer) - before
      got = found.effect.values[i, layer, head]
      assert got == pytest.approx(wanted, abs=1e-9)
  assert found.effect.attrs["units"] == "1"


def test_heads_are_ranked_with_their_signs():
  effects = np.array([[[0.0, 0.4], [-0.9, 0.2]], [[0.2, 0.2], [0.0, 0.3]]])
  assert ranked(effects) == [(0, 1), (1, 1), (0, 0), (1, 0)]


def test_means_of_another_model_are_refused():
  model, _ = random_model(FAMILIES["gpt2"], dtype="float32")
  pairs = random_pairs(FAMILIES["gpt2"], LENGTHS, [-1] * 3)
  with refusal("means: got shape (3, 4, 6); expected (3, 4, 5)"):
    indirect_effects(model, pairs, np.zeros((3, 4, 6)))
