"""Is a sweep one program, whatever the heads, chunks, devices and prompts?"""

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import GPT2, LLAMA, random_model, random_pairs
from slow_params import slow_but

from headjax.interventions import chunks, suffix, sweep
from headjax.interventions.heads import patch_heads
from headjax.interventions.metrics import LogitDifference
from headjax.interventions.record import alternative_z, record
from headjax.models.decoder import unembed_tokens

LENGTHS, FIRST = [6, 8, 3, 8, 5], [3, 5, 2, 7, 2]
TRACES = []


@flax.struct.dataclass
class Counting:
  """The answer's logit; notes each trace."""

  answer: jax.Array

  def __call__(self, model, params, resid):
    TRACES.append(resid.shape)
    return unembed_tokens(model, params, resid, self.answer)


def runs(model, pairs, n_devices=1):
  """The clean run, the other z, and both on so many devices."""
  params = chunks.replicate(model.params, n_devices)
  tokens = chunks.spread((pairs.clean, pairs.reference), n_devices)
  see = jax.jit(record, static_argnums=0)
  clean, other = (see(model.model, params, t) for t in tokens)
  return params, clean, alternative_z(model.model, params, "z", clean, other)


def counted_sweep(model, pairs, heads=None):
  params, clean, z_alt = runs(model, pairs)
  return sweep.suffix_sweep(
    model.model, params, clean, z_alt, Counting(jnp.asarray(pairs.answer)),
    start=pairs.first_difference, answer=pairs.answer_pos, heads=heads,
  )  # fmt: skip


def test_all_heads_layers_and_prompts_are_one_trace_and_one_compile():
  model, _ = random_model(GPT2, dtype="float32")
  before = sweep._suffix_rows.jitted._cache_size()
  TRACES.clear()
  one = counted_sweep(model, random_pairs(GPT2, LENGTHS, FIRST))
  # One trace for the clean metric, one for the 12 edited heads.
  assert len(TRACES) == 2
  assert sweep._suffix_rows.jitted._cache_size() == before + 1
  # Other prompts, lengths and first differences, of the same widths.
  pairs = random_pairs(GPT2, [8, 3, 7, 3, 8], [5, 0, 4, 2, 7], seed=1)
  other = counted_sweep(model, pairs)
  assert len(TRACES) == 2
  assert sweep._suffix_rows.jitted._cache_size() == before + 1
  assert np.abs(one.effect - other.effect).max() > 1e-3


def test_general_sweep_is_one_trace_too():
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, LENGTHS, FIRST)
  _, clean, _ = runs(model, pairs)
  gates = jnp.asarray(np.eye(12).reshape(12, 3, 1, 1, 4, 1))
  edit = sweep.Edit(gates, clean.z * 0)
  before = sweep._general_rows.jitted._cache_size()
  TRACES.clear()
  found = sweep.general_sweep(
    model.model, model.params, jnp.asarray(pairs.clean),
    sweep.Edits(z=(edit,)), Counting(jnp.asarray(pairs.answer)),
    answer=jnp.asarray(pairs.answer_pos), rows=5,
  )  # fmt: skip
  assert found.effect.shape == (12, 5)
  assert len(TRACES) == 1
  assert sweep._general_rows.jitted._cache_size() == before + 1


@pytest.mark.parametrize("heads", slow_but([3], [1, 3]))
def test_heads_per_call_do_not_matter(x64, heads):
  model, _ = random_model(GPT2)
  pairs = random_pairs(GPT2, LENGTHS, FIRST)
  whole, parts = counted_sweep(model, pairs), counted_sweep(model, pairs, heads)
  np.testing.assert_allclose(parts.effect, whole.effect, rtol=0, atol=1e-12)
  np.testing.assert_array_equal(parts.base, whole.base)
  assert (np.abs(whole.effect) > 1e-6).all()


def test_progress_counts_every_head_once():
  model, _ = random_model(GPT2, dtype="float32")
  pairs, done = random_pairs(GPT2, LENGTHS, FIRST), []
  params, clean, z_alt = runs(model, pairs)
  sweep.suffix_sweep(
    model.model, params, clean, z_alt, Counting(jnp.asarray(pairs.answer)),
    start=pairs.first_difference, answer=pairs.answer_pos, heads=3,
    progress=done.append,
  )  # fmt: skip
  assert done == [3, 1] * 3


@pytest.mark.parametrize("method", ["general", "suffix"])
def test_chunks_and_devices_do_not_matter(x64, monkeypatch, method):
  model, _ = random_model(LLAMA)
  pairs = random_pairs(LLAMA, LENGTHS, FIRST)
  sizes = []
  plan = chunks.plan

  def noted(*args, **kwargs):
    sizes.append(plan(*args, **kwargs))
    return sizes[-1]

  monkeypatch.setattr(chunks, "plan", noted)
  monkeypatch.setattr(jax, "local_device_count", lambda: 4)
  spread = patch_heads(model, pairs, method)
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  whole = patch_heads(model, pairs, method)
  budget = 2 * sizes[-1].n_bytes // 5
  parts = patch_heads(model, pairs, method, budget_bytes=budget)
  assert [p.examples for p in sizes[:2]] == [8, 5]
  assert sizes[2].examples < 5 and sizes[2].n_bytes <= budget
  for other in (spread, parts):
    np.testing.assert_allclose(other.effect, whole.effect, rtol=0, atol=1e-12)
    np.testing.assert_allclose(other.base, whole.base, rtol=0, atol=1e-12)
  assert (np.abs(whole.effect) > 1e-6).all()


def test_devices_never_talk_to_each_other():
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, [8] * 8, [3] * 8)
  params, clean, z_alt = runs(model, pairs, n_devices=4)
  window = suffix.make_window(GPT2, pairs.first_difference, pairs.answer_pos, 8)
  window, answer, foil, base = chunks.spread(
    (window, pairs.answer, pairs.foil, np.zeros(8, np.float32)), 4
  )
  shared = sweep._prepare(model.model, params, clean, z_alt, window)
  assert len(shared.k.sharding.device_set) == 4
  assert shared.k.sharding.shard_shape(shared.k.shape)[1] == 2
  metric = LogitDifference(answer, foil)
  program = (
    sweep._suffix_rows.jitted.lower(
      model.model, params, shared, metric, base, np.array([1]), np.arange(4)
    )
    .compile()
    .as_text()
  )
  assert "num_partitions=4" in program
  for word in ("all-", "collective", "reduce-scatter", "broadcast-"):
    assert word not in program.replace("broadcast-in", ""), word


def test_without_the_mask_an_equal_pair_has_an_effect_of_rounding():
  """So the exact 0 is the mask's doing, and covers up nothing large."""
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, [8, 6], [2, -1])
  params, clean, z_alt = runs(model, pairs)
  start = np.array([2, 1])
  window = suffix.make_window(GPT2, start, pairs.answer_pos, 8)
  base = suffix.prepare(model.model, params, clean, z_alt, window)
  call = jax.jit(suffix.sweep_layer, static_argnums=0)
  want = np.asarray(clean.resid[1, 5])
  error = []
  for layer in range(3):
    resid, changed = call(model.model, params, base, layer, jnp.arange(4))
    assert changed[:, 0].all() and not changed[:, 1].any()
    error.append(
      np.abs(np.asarray(resid)[:, 1] - want).max() / np.abs(want).max()
    )
  assert max(error) < 1e-5


def test_float32_effects_are_float64_s_to_five_digits(monkeypatch):
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  pairs = random_pairs(GPT2, LENGTHS, FIRST)
  with jax.enable_x64(True):
    exact = patch_heads(random_model(GPT2)[0], pairs)
  single = patch_heads(random_model(GPT2, dtype="float32")[0], pairs)
  assert exact.attrs["dtype"] == "float64"
  assert single.attrs["dtype"] == "float32"
  np.testing.assert_allclose(single.effect, exact.effect, rtol=0, atol=2e-5)
  assert np.abs(single.effect - exact.effect).max() > 0
