"""Does a head write what it would, with its values moved or a head gone?"""

import jax
import numpy as np
import oracle
import pytest
from helpers import (
  FAMILIES,
  GPT2,
  PUBLIC,
  SCREENING,
  random_model,
  random_pairs,
)
from one_line import refusal

from headjax.interventions.direct_logits import direct_logits
from headjax.interventions.rewritten import shuffled_values, without_heads

LENGTHS = [6, 8, 3]
HEADS = [(0, 1), (1, 2)]


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def readers(model, w, config, pairs):
  """`[example, d_model]` of the frozen final layer norm of GPT-2."""
  found = []
  for i, n in enumerate(pairs.lengths):
    resid = oracle.forward(config, w, pairs.clean[i, :n])[0][-1]
    u = w["W_E"][pairs.answer[i]] - w["W_E"][pairs.foil[i]]
    u = u * w["final_norm_gain"]
    scale = np.sqrt(((resid - resid.mean()) ** 2).mean() + config.norm_eps)
    found.append((u - u.mean()) / scale)
  return np.array(found)


def attributed(read, writes):
  """`[example, layer, head]`, without the mean write of the prompts."""
  writes = np.array(writes)
  return np.einsum("bd,blhd->blh", read, writes - writes.mean(axis=0))


def written(w, z):
  """`[layer, head, d_model]` of the last token."""
  return np.array(
    [
      [z[layer][-1, head] @ w["W_O"][layer, head] for head in range(4)]
      for layer in range(3)
    ]
  )


def test_without_a_head_the_others_write_as_in_the_oracle(x64):
  model, w = random_model(GPT2)
  pairs = random_pairs(GPT2, LENGTHS, [-1] * 3)
  found = without_heads(model, pairs, HEADS, examples=2)
  read = readers(model, w, GPT2, pairs)
  whole = direct_logits(model, pairs)
  np.testing.assert_allclose(found.attribution, whole.attribution, atol=1e-10)
  for c, head in enumerate(HEADS):
    writes = []
    for i, n in enumerate(pairs.lengths):
      gone = {head: np.zeros((n, GPT2.d_head))}
      acts = oracle.forward(GPT2, w, pairs.clean[i, :n], z_patch=gone)[2]
      z = [np.array(x) for x in acts["z"]]
      z[head[0]][:, head[1]] = 0
      writes.append(written(w, z))
    wanted = attributed(read, writes)
    np.testing.assert_allclose(found.changed[c], wanted, atol=1e-9)
    assert np.abs(wanted - whole.attribution.values).max() > 1e-2
  # Nothing of the head's own layer and before it has changed, but itself.
  change = (found.changed - found.attribution).values
  assert np.abs(change[1, :, 0]).max() < 1e-12
  assert np.abs(change[1, :, 1, [0, 1, 3]]).max() < 1e-12
  np.testing.assert_allclose(found.changed[1, :, 1, 2], 0, atol=1e-12)


@pytest.mark.parametrize("name", ["gpt2", "llama_kv2"])
def test_values_change_places_within_the_prompt(x64, name):
  config = FAMILIES[name]
  model, w = random_model(config)
  pairs = random_pairs(config, LENGTHS, [-1] * 3)
  found = shuffled_values(model, pairs, shuffles=2, examples=2)
  whole = direct_logits(model, pairs)
  np.testing.assert_allclose(found.attribution, whole.attribution, atol=1e-10)
  assert np.abs(found.changed - found.attribution).max() > 1e-2
  if name != "gpt2":
    return
  read = readers(model, w, config, pairs)
  for seed in range(2):
    rng, writes = np.random.default_rng(seed), []
    for i, n in enumerate(pairs.lengths):
      order = rng.permutation(n)
      acts = oracle.forward(config, w, pairs.clean[i, :n])[2]
      z = [
        np.stack(
          [
            acts["pattern"][layer][head] @ acts["v"][layer][order][:, head]
            for head in range(4)
          ],
          axis=1,
        )
        for layer in range(3)
      ]
      writes.append(written(w, z))
    wanted = attributed(read, writes)
    np.testing.assert_allclose(found.changed[seed], wanted, atol=1e-9)


def test_what_does_not_apply_is_refused():
  screening, _ = random_model(SCREENING, dtype="float32")
  pairs = random_pairs(SCREENING, LENGTHS, [-1] * 3)
  with refusal("model: got screening attention"):
    shuffled_values(screening, pairs)
  gemma, _ = random_model(PUBLIC["gemma2"], dtype="float32")
  with refusal("model: got a norm of the attention output"):
    without_heads(gemma, pairs, HEADS)
  with refusal("heads: got none"):
    without_heads(gemma, pairs, [])
  with refusal("shuffles: got 0"):
    shuffled_values(gemma, pairs, shuffles=0)
