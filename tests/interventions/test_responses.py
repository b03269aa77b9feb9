"""Are responses those of forwards edited at the reader's layer?"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_responses
from held_models import BLOCKS, held_model
from helpers import GPT2, LLAMA, PUBLIC, SCREENING, TRACR, random_pairs

from headjax.interventions import chunks, clamps, sweep
from headjax.interventions.heads import patch_heads
from headjax.interventions.metrics import LogitDifference
from headjax.interventions.record import alternative_z, record
from headjax.interventions.responses import SUMS, Responses, head_responses
from headjax.models import weights
from headjax.models.decoder import run
from headjax.models.sites import Edit, Edits

CASES = {"gemma2": PUBLIC["gemma2"]}
SLOW = {
  "gpt2": GPT2,
  "screening": SCREENING,
  "llama_kv2": LLAMA,
  "tracr": TRACR,
  "neox": PUBLIC["neox"],
  "olmo2": PUBLIC["olmo2"],
  "olmoe": PUBLIC["olmoe_normed"],
  "blocks": BLOCKS,
}


@pytest.fixture
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def later(config):
  """`[source_layer, 1, layer, 1]`: which readers are in a later layer."""
  line = np.arange(config.n_layers)
  return (line > line[:, None])[:, None, :, None]


def check_responses(config):
  model, w = held_model(config)
  pairs = random_pairs(config, [6, 8], [3, 2])
  data = head_responses(model, pairs)
  products, variation = slow_responses.responses(model, w, pairs)
  there = np.broadcast_to(later(config), products.shape[:4])
  assert np.isnan(data.dot.values[~there]).all()
  for i, name in enumerate(SUMS):
    want = products[there][..., i]
    assert np.abs(want).max() > 1e-4, "it would prove nothing"
    scale = max(1, np.abs(want).max())
    np.testing.assert_allclose(
      data[name].values[there], want, rtol=0, atol=1e-10 * scale
    )
  change = variation[there] / len(pairs)
  assert (change.max(0) > 1e-6).all(), "it would prove nothing"
  found = data.attention_change.values[there]
  np.testing.assert_allclose(found, change, rtol=0, atol=1e-10)


@pytest.mark.parametrize("family", CASES)
def test_responses_are_a_loop_of_edited_forwards(x64, one_device, family):
  check_responses(CASES[family])


@pytest.mark.slow
@pytest.mark.parametrize("family", SLOW)
def test_responses_of_other_families_are_too(x64, one_device, family):
  check_responses(SLOW[family])


def observed(model, pairs, hold=None):
  """The sums of a suffix sweep that is watched."""
  clean, other = (
    record(model.model, model.params, jnp.asarray(tokens))
    for tokens in (pairs.clean, pairs.reference)
  )
  z_alt = alternative_z(model.model, model.params, "z", clean, other)
  metric = LogitDifference(jnp.asarray(pairs.answer), jnp.asarray(pairs.foil))
  return sweep.suffix_sweep(
    model.model, model.params, clean, z_alt, metric,
    start=pairs.first_difference, answer=pairs.answer_pos,
    hold=hold, observe=Responses(jnp.ones(len(pairs), bool)),
  ).observed  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("config", [GPT2, PUBLIC["neox"]], ids=["gpt2", "neox"])
def test_with_everything_held_the_total_response_is_the_direct(x64, config):
  model, _ = held_model(config)
  pairs = random_pairs(config, [8, 8], [3, 2])
  found = observed(model, pairs, clamps.everything(config))
  for i in (1, 2):
    np.testing.assert_allclose(
      found["products"][..., i], found["products"][..., 0], rtol=1e-9
    )
  np.testing.assert_allclose(
    found["variation"][..., 3], found["variation"][..., 2], rtol=1e-7
  )
  # Two layers on, something in between has answered.
  free = observed(model, pairs)["products"][0, :, 2]
  assert np.abs(free[..., 0] / free[..., 2] - 1).min() > 1e-6


@pytest.mark.slow
def test_neither_chunks_nor_devices_matter(x64, monkeypatch):
  """In particular, repeats that fill up a chunk do not count."""
  model, _ = held_model(GPT2)
  pairs = random_pairs(GPT2, [6, 8, 3, 8, 5], [3, 5, 2, 7, 2])
  plans, plan = [], chunks.plan

  def noted(*args, **kwargs):
    plans.append(plan(*args, **kwargs))
    return plans[-1]

  monkeypatch.setattr(chunks, "plan", noted)
  monkeypatch.setattr(jax, "local_device_count", lambda: 4)
  spread = head_responses(model, pairs)
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  whole = head_responses(model, pairs)
  parts = head_responses(model, pairs, budget_bytes=2 * plans[-1].n_bytes // 5)
  assert [p.examples for p in plans[:2]] == [8, 5] and plans[2].examples < 5
  # And what is watched is the plain sweep.
  plain = patch_heads(model, pairs)
  np.testing.assert_allclose(plain.effect, whole.effect, rtol=0, atol=1e-12)
  for other in (spread, parts):
    for name in (*SUMS, "attention_change", "effect", "base"):
      np.testing.assert_allclose(
        other[name], whole[name], rtol=1e-9, atol=1e-12
      )


def test_equal_prompts_are_no_response_at_all(one_device):
  model, _ = held_model(GPT2, dtype="float32")
  data = head_responses(model, random_pairs(GPT2, [8, 6], [-1, -1]))
  for name in (*SUMS, "attention_change"):
    values = data[name].values
    assert (values[~np.isnan(values)] == 0).all(), name


def test_watching_is_one_program(one_device):
  model, _ = held_model(GPT2, dtype="float32")
  before = sweep._suffix_rows.jitted._cache_size()
  for first in ([3, 2, 4], [2, 5, 3]):
    pairs = random_pairs(GPT2, [8, 8, 7], first)
    head_responses(model, pairs)
    assert sweep._suffix_rows.jitted._cache_size() == before + 1


def test_a_patch_adds_delta_to_the_attention_output():
  """Source: paper A, appendix C (leakage), largest error 3e-7."""
  model, _ = held_model(GPT2, scale=0.1, dtype="float32")
  pairs = random_pairs(GPT2, [8, 8], [3, 2])
  see = jax.jit(run, static_argnums=0)
  clean, other = (
    see(model.model, model.params, jnp.asarray(tokens))[1]
    for tokens in (pairs.clean, pairs.reference)
  )
  W_O = np.asarray(weights.per_query_head(model.params, GPT2, "W_O"))
  for layer, head in np.ndindex(3, 4):
    gate = np.zeros((3, 1, 1, 4, 1), np.float32)
    gate[layer, ..., head, :] = 1
    edits = Edits(z=(Edit(jnp.asarray(gate), other.z),))
    patched = see(model.model, model.params, jnp.asarray(pairs.clean), edits)[1]
    dz = np.asarray(other.z - clean.z)[layer, :, :, head].astype(np.float64)
    change = np.asarray(patched.attn_out - clean.attn_out)[layer]
    assert np.abs(change).max() > 1e-3
    np.testing.assert_allclose(change, dz @ W_O[layer, head], atol=3e-7, rtol=0)
