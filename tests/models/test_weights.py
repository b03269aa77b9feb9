"""Are weights put where they belong, and is everything else refused?"""

import jax
import numpy as np
import pytest
from helpers import FAMILIES, GPT2, LLAMA, PUBLIC, random_model, random_weights

from headjax.models import weights


def test_every_weight_comes_back_under_its_name():
  for config in (FAMILIES | PUBLIC).values():
    raw = random_weights(config, 0)
    params = weights.pack(config, raw, "file")
    assert len(jax.tree.leaves(params)) == len(raw)
    for name, array in raw.items():
      assert weights.get(params, name) is array


@pytest.mark.parametrize("name", ["W_Q", "b_O", "final_norm_gain", "W_E"])
def test_missing_weight_is_named(name):
  raw = random_weights(GPT2, 0)
  del raw[name]
  with pytest.raises(ValueError, match=f"^file: {name}: got no tensor"):
    weights.pack(GPT2, raw, "file")


@pytest.mark.parametrize("name", ["W_pos", "b_Q", "attn_norm_bias", "W_new"])
def test_unknown_weight_is_named(name):
  raw = random_weights(LLAMA, 0) | {name: np.zeros(3)}
  with pytest.raises(ValueError, match=f"^file: {name}: got a tensor"):
    weights.pack(LLAMA, raw, "file")


def test_wrong_shape_is_named_with_both_shapes():
  raw = random_weights(LLAMA, 0)
  raw["W_K"] = np.repeat(raw["W_K"], 2, axis=2)
  with pytest.raises(ValueError) as error:
    weights.pack(LLAMA, raw, "file")
  message = str(error.value)
  assert message.startswith("file: W_K: got shape (3, 16, 4, 6)")
  assert "(3, 16, 2, 6)" in message and "\n" not in message


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weight_that_is_not_finite_is_named(bad):
  raw = random_weights(GPT2, 0)
  raw["b_in"][1, 2] = bad
  with pytest.raises(ValueError, match="^file: b_in: got 1 of 72 values"):
    weights.pack(GPT2, raw, "file")


def test_asking_for_a_weight_that_the_model_lacks_is_refused():
  model, _ = random_model(LLAMA, dtype="float32")
  with pytest.raises(ValueError, match="b_Q"):
    weights.get(model.params, "b_Q")


def test_query_heads_share_keys_and_values_in_consecutive_groups():
  model, w = random_model(LLAMA, dtype="float32")
  for name in ("W_Q", "W_K", "W_V", "W_O"):
    got = weights.per_query_head(model.params, LLAMA, name)
    for head in range(4):
      if name == "W_O":
        want = w[name][:, head]
      else:
        want = w[name][:, :, head if name == "W_Q" else head // 2]
      np.testing.assert_allclose(got[:, head], want, rtol=1e-6)
