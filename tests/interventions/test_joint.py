"""Are sets of heads patched together, as one oracle forward per set does it?"""

import jax
import numpy as np
import oracle
import pytest
import screening_oracle
from helpers import FAMILIES, PUBLIC, SCREENING, random_model, random_pairs
from one_line import refusal

from headjax import results
from headjax.interventions import chunks, joint, sweep
from headjax.interventions.heads import patch_heads

SETS = {
  "nothing": [],
  "one": [(1, 0)],
  "a layer": [(0, 0), (0, 1)],
  "two layers": [(0, 1), (2, 0)],
  "everything": [(layer, head) for layer in range(3) for head in range(2)],
}
CONFIGS = {
  "tracr": FAMILIES["tracr"],
  "llama_kv2": FAMILIES["llama_kv2"],
  "neox": PUBLIC["neox"],
  "gemma2": PUBLIC["gemma2"],
  "screening": SCREENING,
}
QUICK = ("llama_kv2",)


@pytest.fixture
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def slow_sets(config, w, pairs, sets):
  """`effect[example, set]`, one forward a set and prompt."""
  screens = config.attention == "screening"
  forward = (screening_oracle if screens else oracle).forward
  effect = np.zeros((len(pairs), len(sets)))
  for i, n in enumerate(pairs.lengths):
    clean, reference = pairs.clean[i, :n], pairs.reference[i, :n]
    z = forward(config, w, reference)[2]["z"]

    def score(patch, i=i, clean=clean):
      logits = forward(config, w, clean, z_patch=patch)[1][-1]
      return logits[pairs.answer[i]] - logits[pairs.foil[i]]

    for j, heads in enumerate(sets.values()):
      patch = {(layer, head): z[layer][:, head] for layer, head in heads}
      effect[i, j] = score({}) - score(patch)
  return effect


@pytest.mark.parametrize(
  "name",
  [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
    for name in CONFIGS
  ],
)
def test_a_set_is_one_forward_with_all_its_heads(x64, one_device, name):
  config = CONFIGS[name]
  model, w = random_model(config, scale=0.15 if name == "tracr" else 0.4)
  pairs = random_pairs(config, [6, 8, 3], [3, 5, 0])
  found = joint.patch_sets(model, pairs, SETS)
  wanted = slow_sets(config, w, pairs, SETS)
  assert np.abs(wanted).max() > 1e-3, "the test would prove nothing"
  np.testing.assert_allclose(found.effect, wanted, rtol=0, atol=1e-10)
  assert (found.effect.sel(set="nothing") == 0).all()
  alone = patch_heads(model, pairs).effect[:, 1, 0]
  np.testing.assert_allclose(found.effect.sel(set="one"), alone, atol=1e-10)


@pytest.fixture(scope="module")
def small():
  config = FAMILIES["gpt2"]
  return random_model(config, dtype="float32")[0], random_pairs(
    config, [6, 8, 3, 5], [3, 5, 0, 2]
  )


def test_what_comes_out_is_labelled_and_can_be_saved(small, tmp_path):
  model, pairs = small
  lanes = joint.lane_sets(model.config)
  found = joint.patch_sets(model, pairs, lanes)
  assert found.effect.dims == ("example", "set")
  assert found["set"].values.tolist() == [f"lane {h}" for h in range(4)]
  members = found.members.values
  assert members.shape == (4, 3, 4) and members.sum() == 12
  assert all(members[h, layer, h] for h in range(4) for layer in range(3))
  results.save(found, tmp_path / "joint.nc")
  assert results.load(tmp_path / "joint.nc").identical(found)


def budget(model):
  """Enough for two examples."""
  return chunks.plan(
    model.config, n_examples=2, n_pos=8, width=8, itemsize=4, budget_bytes=2**30
  ).n_bytes


def test_chunks_of_any_size_give_the_same(small, one_device):
  model, pairs = small
  lanes = joint.lane_sets(model.config)
  whole = joint.patch_sets(model, pairs, lanes)
  least = joint.patch_sets(model, pairs, lanes, budget_bytes=budget(model))
  assert (least.attrs["chunk"], whole.attrs["chunk"]) == (8, 16)
  np.testing.assert_allclose(least.effect, whole.effect, atol=2e-5)


def test_any_number_of_sets_is_one_program(small):
  model, pairs = small
  lanes = joint.lane_sets(model.config)
  joint.patch_sets(model, pairs, lanes)
  before = sweep._general_rows.jitted._cache_size()
  more = {
    f"{name} {i}": heads for i in range(3) for name, heads in lanes.items()
  }
  joint.patch_sets(model, pairs, more | {"last": [(0, 0)]})
  joint.patch_sets(model, pairs, {"one": [(0, 0)]})
  assert sweep._general_rows.jitted._cache_size() == before


def test_bad_sets_are_refused(small):
  model, pairs = small
  with refusal("set 'mine'", "(3, 0)", "layers below 3"):
    joint.patch_sets(model, pairs, {"mine": [(3, 0)]})
  with refusal("set 'mine'", "(0, -1)"):
    joint.patch_sets(model, pairs, {"mine": [(0, -1)]})
  with refusal("sets", "none"):
    joint.patch_sets(model, pairs, {})
  with refusal("site", "'pattern'"):
    joint.patch_sets(model, pairs, {"a": []}, site="pattern")
