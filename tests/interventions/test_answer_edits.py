"""Is the last token changed as asked, and no other?"""

import jax
import numpy as np
import oracle
import pytest
from helpers import FAMILIES, GPT2, random_model, random_pairs
from one_line import refusal

from headjax.interventions.answer_edits import (
  last_tokens,
  steer,
  steered_layer,
  steering,
  transplant,
)
from headjax.models.decoder import run

LENGTHS = [6, 8, 3]
GROUPS = np.zeros((3, 3, 4), bool)
GROUPS[0, 0, 1] = GROUPS[0, 2, 3] = True
GROUPS[1, 1] = True


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


@pytest.mark.parametrize("name", ["gpt2", "llama_kv2"])
def test_a_transplant_is_one_of_the_last_token(x64, name):
  config = FAMILIES[name]
  model, w = random_model(config)
  pairs = random_pairs(config, LENGTHS, [-1] * 3)
  means = np.random.default_rng(1).normal(size=(3, 4, config.d_head))
  found = transplant(model, pairs, GROUPS, means, examples=2, rows=2)
  for i, n in enumerate(pairs.lengths):
    tokens = pairs.clean[i, :n]
    _, _, acts = oracle.forward(config, w, tokens)
    for g, group in enumerate(GROUPS):
      # Earlier tokens of later layers do not see the last one.
      patch = {}
      for layer, head in np.argwhere(group):
        patch[layer, head] = acts["z"][layer][:, head].copy()
        patch[layer, head][-1] = means[layer, head]
      logits = oracle.forward(config, w, tokens, z_patch=patch)[1][-1]
      wanted = logits[pairs.answer[i]] - logits[pairs.foil[i]]
      assert found.edited.values[i, g] == pytest.approx(wanted, abs=1e-9)
  np.testing.assert_array_equal(found.edited[:, 2], found.base)
  assert np.abs(found.edited - found.base).max() > 0.1


def test_steering_adds_to_the_stream_of_the_last_token(x64):
  model, _ = random_model(GPT2)
  pairs = random_pairs(GPT2, LENGTHS, [-1] * 3)
  first, second = np.random.default_rng(1).normal(size=(2, 16))
  vectors = {"a": first, "b": second}
  found = steer(
    model, pairs, vectors, strengths=(0.0, 0.5, -2.0), examples=2, rows=2
  )
  assert found.attrs["layer"] == steered_layer(GPT2) == 1
  assert found.edited.dims == ("example", "vector", "strength")
  plain_rows = np.tile(found.base.values[:, None], 2)
  np.testing.assert_array_equal(found.edited[:, :, 0], plain_rows)
  for i, n in enumerate(pairs.lengths):
    tokens = pairs.clean[i : i + 1, :n]
    edits = steering(
      model, last_tokens(pairs)[i : i + 1, :n], -2 * vectors["b"], 1
    )
    resid, acts = run(model.model, model.params, tokens, edits)
    _, plain = run(model.model, model.params, tokens)
    change = np.asarray(acts.resid_post - plain.resid_post)
    assert np.abs(change[0]).max() == 0
    np.testing.assert_allclose(change[1, 0, -1], -2 * vectors["b"], atol=1e-12)
    assert np.abs(change[1, 0, :-1]).max() == 0
    logits = model.model.apply(
      {"params": model.params}, resid, method="logits"
    )[0, -1]
    wanted = float(logits[pairs.answer[i]] - logits[pairs.foil[i]])
    assert found.edited.values[i, 1, 2] == pytest.approx(wanted, abs=1e-9)


def test_what_does_not_fit_is_refused():
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, LENGTHS, [-1] * 3)
  with refusal("groups: got bool of shape (3, 3, 2)"):
    transplant(model, pairs, GROUPS[..., :2], np.zeros((3, 4, 5)))
  with refusal("means: got shape (3, 4, 4); expected (3, 4, 5)"):
    transplant(model, pairs, GROUPS, np.zeros((3, 4, 4)))
  with refusal("vectors['a']: got shape (15,); expected 16 finite"):
    steer(model, pairs, {"a": np.zeros(15)})
  with refusal("layer: got 3; expected 0 to 2"):
    steer(model, pairs, {"a": np.zeros(16)}, layer=3)
  with refusal("vectors: got none"):
    steer(model, pairs, {})
