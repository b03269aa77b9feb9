"""Is a group gone as if its outputs were replaced one by one?"""

import jax
import numpy as np
import oracle
import pytest
from helpers import FAMILIES, GPT2, random_model, random_pairs
from one_line import refusal

from headjax.interventions.group_lesions import lesion_groups, mean_outputs

LENGTHS = [6, 8, 3, 7]
GROUPS = np.zeros((3, 3, 4), bool)
GROUPS[0, 0, 1] = GROUPS[0, 2, 3] = True
GROUPS[1, 1] = True


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def kinds_of(pairs):
  return np.random.default_rng(3).integers(0, 3, pairs.clean.shape)


def slow(config, w, pairs, replace):
  """`lesioned[example, group]` and `base[example]`, a forward for each."""
  lesioned, base = np.zeros((len(pairs), len(GROUPS))), np.zeros(len(pairs))
  for i, n in enumerate(pairs.lengths):
    tokens = pairs.clean[i, :n]

    def difference(tokens, patch, i=i):
      logits = oracle.forward(config, w, tokens, z_patch=patch)[1][-1]
      return logits[pairs.answer[i]] - logits[pairs.foil[i]]

    base[i] = difference(tokens, {})
    for g, group in enumerate(GROUPS):
      patch = {
        (layer, head): replace(i, n, layer, head)
        for layer, head in np.argwhere(group)
      }
      lesioned[i, g] = difference(tokens, patch)
  return lesioned, base


@pytest.mark.parametrize("name", ["gpt2", "llama_kv2"])
def test_zero_takes_a_whole_group_away(x64, name):
  config = FAMILIES[name]
  model, w = random_model(config)
  pairs = random_pairs(config, LENGTHS, [-1] * 4)
  found = lesion_groups(model, pairs, GROUPS, examples=3, rows=2)
  wanted, base = slow(
    config, w, pairs, lambda i, n, *_: np.zeros((n, config.d_head))
  )
  assert np.abs(wanted[:, :2] - base[:, None]).max() > 0.1
  np.testing.assert_allclose(found.lesioned, wanted, atol=1e-9)
  np.testing.assert_allclose(found.base, base, atol=1e-9)
  # The last group has no heads.
  np.testing.assert_array_equal(found.lesioned[:, 2], found.base)
  assert found.attrs["ablation"] == "zero"


def test_means_are_those_of_tokens_of_one_kind(x64):
  model, w = random_model(GPT2)
  pairs = random_pairs(GPT2, LENGTHS, [-1] * 4)
  kinds = kinds_of(pairs)
  found = mean_outputs(model, pairs, kinds, 4, examples=3)
  seen = {kind: [] for kind in range(4)}
  for i, n in enumerate(pairs.lengths):
    z = oracle.forward(GPT2, w, pairs.clean[i, :n])[2]["z"]
    for pos in range(n):
      seen[kinds[i, pos]].append([z[layer][pos] for layer in range(3)])
  for kind in range(3):
    np.testing.assert_allclose(found[kind], np.mean(seen[kind], 0), atol=1e-6)
  np.testing.assert_array_equal(found[3], 0)


def test_means_take_the_place_of_outputs_by_kind(x64):
  model, w = random_model(GPT2)
  pairs = random_pairs(GPT2, LENGTHS, [-1] * 4)
  kinds = kinds_of(pairs)
  means = np.random.default_rng(4).normal(size=(3, 3, 4, GPT2.d_head))
  found = lesion_groups(
    model, pairs, GROUPS, means=means, kinds=kinds, examples=3
  )
  wanted, _ = slow(
    GPT2, w, pairs, lambda i, n, layer, head: means[kinds[i, :n], layer, head]
  )
  np.testing.assert_allclose(found.lesioned, wanted, atol=1e-9)
  assert found.attrs["ablation"] == "mean"


def test_what_does_not_fit_is_refused():
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, LENGTHS, [-1] * 4)
  kinds, means = kinds_of(pairs), np.zeros((2, 3, 4, GPT2.d_head))
  with refusal("groups: got bool of shape (3, 3, 3); expected bool [group, 3"):
    lesion_groups(model, pairs, GROUPS[:, :, 1:])
  with refusal("groups: got int64"):
    lesion_groups(model, pairs, GROUPS.astype(int))
  with refusal("groups: got none"):
    lesion_groups(model, pairs, GROUPS[:0])
  with refusal("kinds: got None; expected means and kinds"):
    lesion_groups(model, pairs, GROUPS, means=means)
  with refusal("kinds: got 0 to 2; expected 0 to 1"):
    lesion_groups(model, pairs, GROUPS, means=means, kinds=kinds)
  with refusal("kinds: got shape (4, 7)"):
    mean_outputs(model, pairs, kinds[:, 1:], 3)
