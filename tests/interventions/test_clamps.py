"""Are clamped effects those of full forwards with the parts held?"""

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
import slow_clamps
from held_models import BLOCKS, held_model
from helpers import (
  FAMILIES,
  GPT2,
  LLAMA,
  PUBLIC,
  SCREENING,
  TRACR,
  random_pairs,
)
from slow_params import slow_but

from headjax.interventions import clamps, held_rows, suffix
from headjax.interventions.heads import patch_heads
from headjax.interventions.record import alternative_z, record
from headjax.models import weights

CASES = {"gpt2": GPT2, "gemma2": PUBLIC["gemma2"]}
SLOW = {
  "screening": SCREENING,
  "llama_kv2": LLAMA,
  "llama_windows": FAMILIES["llama_windows"],
  "tracr": TRACR,
  "neox": PUBLIC["neox"],
  "olmo2": PUBLIC["olmo2"],
  "olmoe": PUBLIC["olmoe"],
  "blocks": BLOCKS,
}
LENGTHS, FIRST = [6, 8, 8], [3, 2, -1]


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def random_hold(config, seed=0):
  """Half of what can be held, for each source another half."""
  rng = np.random.default_rng(seed)
  most = clamps.everything(config)
  return jax.tree.map(lambda x: x & (rng.random(x.shape) < 0.5), most)


def check_holds(config):
  model, _ = held_model(config)
  pairs, hold = random_pairs(config, LENGTHS, FIRST), random_hold(config)
  found = clamps.clamp_heads(model, pairs, {"half": hold}).effect.values
  slow, free = slow_clamps.effects(model, pairs, hold, clamps.nothing(config))
  assert np.abs(slow - free)[..., :2].max() > 1e-4, "it would prove nothing"
  slow = slow.reshape(-1, len(pairs)).T
  np.testing.assert_allclose(found[:, 0], slow, rtol=0, atol=1e-10)
  assert (found[2] == 0).all()


@pytest.mark.parametrize("family", CASES)
def test_holds_are_a_loop_of_edited_forwards(x64, family):
  check_holds(CASES[family])


@pytest.mark.slow
@pytest.mark.parametrize("family", SLOW)
def test_holds_of_other_families_are_too(x64, family):
  check_holds(SLOW[family])


def test_all_holds_and_sources_are_one_program():
  model, _ = held_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, [8, 8], [3, 2])
  holds = {f"lane {i}": clamps.lane(GPT2, i) for i in range(4)}
  holds["half"] = random_hold(GPT2)
  before = held_rows._rows.jitted._cache_size()
  whole = clamps.clamp_heads(model, pairs, holds)
  assert held_rows._rows.jitted._cache_size() == before + 1
  sources = [(2, 3), (0, 1)]
  some = clamps.clamp_heads(model, pairs, holds, sources=sources)
  assert held_rows._rows.jitted._cache_size() == before + 1
  for i, (layer, head) in enumerate(sources):
    assert (some.source_layer[i], some.source_head[i]) == (layer, head)
    np.testing.assert_allclose(
      some.effect[:, :, i], whole.effect[:, :, 4 * layer + head], atol=1e-5
    )
  np.testing.assert_array_equal(some.base, whole.base)


@pytest.mark.slow
def test_holding_nothing_is_the_plain_sweep(x64):
  model, _ = held_model(LLAMA)
  pairs = random_pairs(LLAMA, [6, 8, 3, 8, 5], [3, 5, 2, 7, -1])
  plain = patch_heads(model, pairs)
  held = clamps.clamp_heads(model, pairs, {"none": clamps.nothing(LLAMA)})
  np.testing.assert_allclose(
    held.effect[:, 0], plain.effect.values.reshape(5, -1), rtol=0, atol=1e-12
  )
  budget = 300_000
  parts = clamps.clamp_heads(
    model, pairs, {"none": clamps.nothing(LLAMA)}, budget_bytes=budget
  )
  assert parts.attrs["chunk"] < held.attrs["chunk"]
  np.testing.assert_allclose(parts.effect, held.effect, rtol=0, atol=1e-12)


def rows_with_everything_held(config, dtype, patched):
  """`[head, batch, d_model]` streams of layer 0's heads, and the clean one."""
  model, w = held_model(config, dtype=dtype)
  pairs = random_pairs(config, [8, 8], [3, 2])
  clean, other = (
    record(model.model, model.params, jnp.asarray(tokens))
    for tokens in (pairs.clean, pairs.reference)
  )
  z_alt = alternative_z(
    model.model, model.params, "z", clean, other if patched else clean
  )
  window = suffix.make_window(
    config, pairs.first_difference, pairs.answer_pos, 8
  )
  base = suffix.prepare(model.model, model.params, clean, z_alt, window, True)
  heads = np.arange(config.n_heads)
  hold = jax.tree.map(lambda x: x[0], clamps.everything(config))
  resid, changed = jax.jit(suffix.sweep_layer, static_argnums=0)(
    model.model, model.params, base, 0, heads, hold
  )
  assert (changed == patched).all()
  return model, w, pairs, clean, other, np.asarray(resid)


@pytest.mark.parametrize("family", slow_but(["gpt2"], ["gpt2", "gemma2"]))
def test_all_clamped_and_nothing_patched_is_the_clean_run(family):
  """To the last bits, in float32; its effect is exactly 0."""
  config = CASES[family]
  *_, clean, _, resid = rows_with_everything_held(config, "float32", False)
  want = np.broadcast_to(np.asarray(clean.resid)[:, -1], resid.shape)
  np.testing.assert_allclose(
    resid, want, rtol=0, atol=1e-6 * np.abs(want).max()
  )
  model, _ = held_model(config, dtype="float32")
  same = random_pairs(config, [8, 6], [-1, -1])
  held = {"all": clamps.everything(config)}
  assert (clamps.clamp_heads(model, same, held).effect == 0).all()


def test_everything_clamped_is_the_closed_form_of_the_direct_effect(x64):
  """final_norm(resid + delta), unembedded."""
  model, w, pairs, clean, other, resid = rows_with_everything_held(
    GPT2, "float64", True
  )
  W_O = np.asarray(weights.per_query_head(model.params, GPT2, "W_O"))
  dz = np.asarray(other.z - clean.z)[:, :, -1]  # [layer, batch, head, d_head]
  delta = np.einsum("lbhe,lhed->lhbd", dz, W_O)
  stream = np.asarray(clean.resid)[:, -1] + delta
  np.testing.assert_allclose(resid, stream[0], rtol=0, atol=1e-10)

  def difference(x):
    gain, bias = w["final_norm_gain"], w["final_norm_bias"]
    logits = oracle._norm(GPT2, x, gain, bias) @ w["W_E"].T
    rows = np.arange(len(pairs))
    return logits[..., rows, pairs.answer] - logits[..., rows, pairs.foil]

  want = difference(np.asarray(clean.resid)[:, -1]) - difference(stream)
  held = {"all": clamps.everything(GPT2)}
  found = clamps.clamp_heads(model, pairs, held).effect.values[:, 0]
  assert np.abs(want).max() > 1e-3
  np.testing.assert_allclose(found, want.reshape(12, 2).T, rtol=0, atol=1e-10)


def test_builders_hold_what_they_say():
  config, sizes = GPT2, (3, 4, 3, 4)
  for layer, head, later, other in np.ndindex(sizes):
    at = (layer, head, later, other)
    after = later > layer
    assert clamps.later_heads(config).heads[at] == after
    assert clamps.everything(config).heads[at] == after
    assert clamps.lane(config).heads[at] == (after and head == other)
    assert clamps.lane(config, 3).heads[at] == (
      after and other == (head + 3) % 4
    )
    alone = after and (later, other) == (2, 1)
    assert clamps.one_head(config, 2, 1).heads[at] == alone
    assert not clamps.later_mlps(config).heads[at]
    assert clamps.later_mlps(config).mlps[at[:3]] == (later >= layer)
    assert clamps.everything(config).mlps[at[:3]] == (later >= layer)
    assert not clamps.later_heads(config).mlps[at[:3]]
    assert not clamps.lane(config).mlps[at[:3]]
  assert not clamps.nothing(config).heads.any()
  assert not clamps.everything(SCREENING).mlps.any()


def refused(config=GPT2, **arguments):
  model, _ = held_model(config, dtype="float32")
  arguments = {"holds": {"mine": clamps.nothing(config)}} | arguments
  with pytest.raises(ValueError) as error:
    clamps.clamp_heads(model, random_pairs(config, [8], [3]), **arguments)
  assert "\n" not in str(error.value)
  return str(error.value)


def test_what_cannot_be_clamped_is_refused():
  hold = clamps.nothing(GPT2)
  early = hold.heads.copy()
  early[1, 0, 1, 2] = True
  assert "heads of holds['mine']: got a part that no patch" in refused(
    holds={"mine": hold.replace(heads=early)}
  )
  early = hold.mlps.copy()
  early[2, 0, 1] = True
  assert "mlps of holds['mine']: got a part that no patch" in refused(
    holds={"mine": hold.replace(mlps=early)}
  )
  assert "got float64 of shape" in refused(
    holds={"mine": hold.replace(mlps=hold.mlps * 1.0)}
  )
  assert "holds: got none" in refused(holds={})
  assert "sources: got none" in refused(sources=[])
  assert "sources: got (3, 0)" in refused(sources=[(0, 0), (3, 0)])
  mlps = np.ones_like(clamps.nothing(SCREENING).mlps)
  without = clamps.nothing(SCREENING).replace(mlps=mlps)
  assert "no patch changes" in refused(SCREENING, holds={"mine": without})
  with pytest.raises(ValueError, match="got a model without MLPs"):
    clamps.later_mlps(SCREENING)
  with pytest.raises(
    ValueError, match="got \\(0, 4\\); expected a layer below 3"
  ):
    clamps.one_head(GPT2, 0, 4)
