"""Does a model with K/V heads of its own for each query head do the same?"""

import dataclasses

import jax
import numpy as np
import pytest
from helpers import FAMILIES, GPT2, LLAMA, PUBLIC, random_model, random_tokens

from headjax.models.decoder import Decoder, run
from headjax.models.ungroup import ungroup

CASES = {
  "llama_kv1": FAMILIES["llama_kv1"],
  "llama_kv2": LLAMA,
  "qwen2": PUBLIC["qwen2"],  # biases
  "olmo2": PUBLIC["olmo2"],  # a norm over all keys
  "adapter": dataclasses.replace(GPT2, n_kv_heads=2, value_adapter=3),
}


@pytest.mark.parametrize("case", CASES)
def test_the_function_is_the_same(case, x64):
  model, _ = random_model(CASES[case])
  config, params = ungroup(model.config, model.params)
  assert config.group_size == 1
  tokens = random_tokens(config, (2, 7))
  resid, acts = run(model.model, model.params, tokens)
  other, ungrouped = run(Decoder(config), params, tokens)
  np.testing.assert_allclose(other, resid, atol=1e-12)
  np.testing.assert_allclose(ungrouped.k, acts.k, atol=1e-12)


def test_a_model_without_groups_is_given_back():
  model, _ = random_model(GPT2, dtype="float32")
  config, params = ungroup(model.config, model.params)
  assert config is model.config
  assert params is model.params


def test_gradients_of_a_group_add_up(x64):
  model, _ = random_model(LLAMA)
  tokens = random_tokens(LLAMA, (2, 6))

  def gradient(config, params):
    def loss(params):
      resid, _ = run(Decoder(config), params, tokens)
      return (resid**2).sum()

    return jax.grad(loss)(params)["blocks"]["attention"]["W_V"]

  shared = gradient(model.config, model.params)
  each = gradient(*ungroup(model.config, model.params))
  grouped = each.reshape(*shared.shape[:3], LLAMA.group_size, -1).sum(3)
  np.testing.assert_allclose(grouped, shared, rtol=1e-9)
