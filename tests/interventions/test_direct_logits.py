"""Do attributions add up, and are they what loops over heads give?"""

import dataclasses

import jax
import numpy as np
import oracle
import pytest
from helpers import FAMILIES, GPT2, PUBLIC, random_model, random_pairs
from one_line import refusal

from headjax import results
from headjax.geometry.designs import WriteDesign
from headjax.interventions.direct_logits import direct_logits

CASES = {
  name: (FAMILIES | PUBLIC)[name]
  for name in ("gpt2", "llama_kv2", "tracr", "neox", "olmo")
}
QUICK = ("gpt2", "llama_kv2")
PARAMS = [
  name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
  for name in CASES
]
LENGTHS = [6, 8, 3, 7]


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def slow(config, w, pairs):
  """Writes `[example, layer, head, d_model]`, frozen readers, differences."""
  W_U = w["W_E"].T if config.tied else w["W_U"]
  writes, readers, differences = [], [], []
  for i, n in enumerate(pairs.lengths):
    resid, logits, acts = oracle.forward(config, w, pairs.clean[i, :n])
    writes.append(
      [
        [acts["z"][layer][-1, h] @ w["W_O"][layer, h]
         for h in range(config.n_heads)]
        for layer in range(config.n_layers)
      ]
    )  # fmt: skip
    answer, foil = pairs.answer[i], pairs.foil[i]
    u = W_U[:, answer] - W_U[:, foil]
    x = resid[-1]
    if config.norm.startswith("layernorm"):
      x = x - x.mean()
    scale = np.sqrt(np.mean(x**2) + config.norm_eps)
    if config.norm == "none":
      scale = 1.0
    gain = w.get("final_norm_gain", np.ones(config.d_model))
    centre = np.eye(config.d_model)
    if config.norm.startswith("layernorm"):
      centre -= 1 / config.d_model
    readers.append(centre @ (gain * u) / scale)
    differences.append(logits[-1][answer] - logits[-1][foil])
  return np.array(writes), np.array(readers), np.array(differences)


@pytest.mark.parametrize("name", PARAMS)
def test_attributions_are_those_of_the_definition(x64, name):
  config = CASES[name]
  model, w = random_model(config, scale=0.15 if name == "tracr" else 0.4)
  pairs = random_pairs(config, LENGTHS, [-1] * 4)
  writes, readers, differences = slow(config, w, pairs)
  plain = direct_logits(model, pairs, centred=False)
  wanted = np.einsum("blhd,bd->blh", writes, readers)
  assert np.abs(wanted).max() > 1e-2, "the test would prove nothing"
  np.testing.assert_allclose(plain.attribution, wanted, atol=1e-10)
  np.testing.assert_allclose(plain.base, differences, atol=1e-9)
  refined = direct_logits(model, pairs)
  apart = writes - writes.mean(axis=0, keepdims=True)
  wanted = np.einsum("blhd,bd->blh", apart, readers)
  np.testing.assert_allclose(refined.attribution, wanted, atol=1e-10)


def test_a_frozen_write_counts(x64):
  config = dataclasses.replace(GPT2, d_model=20, write=WriteDesign("axis", 0.3))
  model, w = random_model(config)
  w["W_O"] = config.write.dense(config.sizes)
  pairs = random_pairs(config, LENGTHS, [-1] * 4)
  writes, readers, _ = slow(config, w, pairs)
  found = direct_logits(model, pairs, centred=False)
  wanted = np.einsum("blhd,bd->blh", writes, readers)
  np.testing.assert_allclose(found.attribution, wanted, atol=1e-10)


def test_the_size_of_a_chunk_changes_nothing_and_the_result_is_labelled():
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, LENGTHS, [-1] * 4)
  whole = direct_logits(model, pairs)
  assert whole.attribution.long_name == "direct logit attribution"
  # The last chunk repeats an example that must not count twice in the mean.
  parts = direct_logits(model, pairs, examples=3)
  np.testing.assert_allclose(parts.attribution, whole.attribution, atol=2e-5)
  np.testing.assert_allclose(parts.base, whole.base, atol=2e-5)
  assert whole.attribution.dims == ("example", "layer", "head")
  assert whole.attrs["forwards"] == 1 and results.MARK in whole.attrs


def test_heads_behind_a_norm_are_refused():
  model, _ = random_model(PUBLIC["gemma2"], dtype="float32")
  pairs = random_pairs(PUBLIC["gemma2"], [5], [-1])
  with refusal("model: got a norm of the attention output"):
    direct_logits(model, pairs)
