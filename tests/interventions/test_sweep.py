"""Do both sweeps compute what one oracle forward per patch computes?"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_sweep
from helpers import FAMILIES, GPT2, LLAMA, TRACR, random_model, random_pairs
from slow_params import slow_but

from headjax.interventions import edits
from headjax.interventions.heads import patch_heads
from headjax.interventions.metrics import LogitDifference
from headjax.interventions.record import alternative_z, record
from headjax.interventions.sweep import general_sweep, suffix_sweep
from headjax.models.sites import Edit, Edits

LENGTHS = [6, 8, 3, 8, 5]
# Position 0, the middle and the answer itself; the last pair is equal.
FIRST = {"windowed": [3, 5, 2, 7, -1], "whole": [0, 4, 2, 7, -1]}
QUESTIONS = [
  ("z", "all", "reference", "logit_difference"),
  ("k", "all", "reference", "kl"),
  ("q", "last", "mean", "log_probability"),
  ("v", "all", "zero", "logit_difference"),
  ("z", "last", "zero", "kl"),
  ("q", "all", "reference", "log_probability"),
  ("v", "last", "reference", "kl"),
  ("k", "all", "mean", "logit_difference"),
]
CASES = [
  ("gpt2", "windowed", 0),
  ("gpt2", "whole", 2),
  ("llama_kv1", "windowed", 1),
  ("llama_kv1", "whole", 3),
  ("llama_kv2", "windowed", 5),
  ("llama_kv2", "whole", 7),
  ("llama_kv4", "windowed", 6),
  ("llama_windows", "windowed", 1),
  ("llama_windows", "whole", 4),
  ("tracr", "windowed", 0),
  ("tracr", "whole", 3),
]


@pytest.fixture
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def patched(config, first, question, method):
  # Without norms the stream must be kept from exploding.
  scale = 0.15 if config.norm == "none" else 0.4
  model, w = random_model(config, scale=scale)
  pairs = random_pairs(config, LENGTHS, FIRST[first])
  site, position, ablation, metric = question
  data = patch_heads(
    model, pairs, method,
    site=site, position=position, ablation=ablation, metric=metric,
  )  # fmt: skip
  return data, slow_sweep.sweep(config, w, pairs, *question)


def assert_close(data, slow, atol=1e-10):
  effect, base = slow
  assert np.abs(effect).max() > 1e-4, "the test would prove nothing"
  np.testing.assert_allclose(data.effect, effect, rtol=0, atol=atol)
  np.testing.assert_allclose(data.base, base, rtol=0, atol=atol)


@pytest.mark.parametrize("family, first, question", slow_but(CASES[::2], CASES))
def test_suffix_sweep_is_a_loop_of_oracle_forwards(
  x64, one_device, family, first, question
):
  config, question = FAMILIES[family], QUESTIONS[question]
  assert_close(*patched(config, first, question, "suffix"))


@pytest.mark.parametrize(
  "family, question",
  list(zip(["gpt2", "llama_windows", "tracr"], QUESTIONS[:3], strict=True)),
)
def test_general_sweep_is_a_loop_of_oracle_forwards(
  x64, one_device, family, question
):
  assert_close(*patched(FAMILIES[family], "windowed", question, "general"))


def test_equal_prompts_have_effect_exactly_zero(one_device):
  """In float32, where two programs would differ in the last bits."""
  model, _ = random_model(LLAMA, dtype="float32")
  pairs = random_pairs(LLAMA, [8, 6], [2, -1])
  for site in ("z", "q", "k", "v"):
    effect = patch_heads(model, pairs, site=site).effect.values
    assert (effect[1] == 0).all(), site
    assert (np.abs(effect[0]) > 1e-4).any(), site


def test_answer_may_lie_before_the_end_of_a_bidirectional_prompt(x64):
  """Positions after the answer change too, and the answer sees them."""
  model, _ = random_model(TRACR, scale=0.15)
  tokens = jnp.asarray(random_pairs(TRACR, [6, 6], [0, 0]).clean)
  answer = np.array([2, 5])
  metric = LogitDifference(jnp.array([1, 2]), jnp.array([3, 4]))
  clean = record(model.model, model.params, tokens)
  suffix = suffix_sweep(
    model.model, model.params, clean, jnp.zeros_like(clean.z), metric,
    start=0 * answer, answer=answer,
  )  # fmt: skip
  (edit,) = edits.zero(TRACR, "z").z
  gated = Edits(z=(edit.replace(gate=edits.head_gates(TRACR)),))
  general = general_sweep(
    model.model, model.params, tokens, gated, metric, answer=jnp.asarray(answer)
  )
  np.testing.assert_allclose(
    suffix.effect.reshape(general.effect.shape), general.effect, atol=1e-10
  )


def test_answer_may_lie_before_the_end_of_a_causal_prompt(x64):
  """And then nothing after it matters."""
  model, w = random_model(GPT2)
  pairs = random_pairs(GPT2, [4, 7], [1, 3])
  answer = pairs.answer_pos
  metric = LogitDifference(jnp.asarray(pairs.answer), jnp.asarray(pairs.foil))
  # Other tokens beyond the answer, and no key_valid.
  beyond = np.arange(7) >= pairs.lengths[:, None]
  runs = [
    record(model.model, model.params, jnp.asarray(tokens + junk * beyond))
    for tokens, junk in ((pairs.clean, 5), (pairs.reference, 7))
  ]
  sweep = suffix_sweep(
    model.model, model.params, runs[0],
    alternative_z(model.model, model.params, "z", *runs),
    metric, start=pairs.first_difference, answer=answer,
  )  # fmt: skip
  effect, _ = slow_sweep.sweep(GPT2, w, pairs)
  np.testing.assert_allclose(
    np.moveaxis(sweep.effect, -1, 0), effect, rtol=0, atol=1e-10
  )


def own_value_sweep(model, pairs, gates):
  """The general sweep with the model's own z as the value, in one program."""
  tokens = jnp.asarray(pairs.clean)
  metric = LogitDifference(jnp.asarray(pairs.answer), jnp.asarray(pairs.foil))
  value = record(model.model, model.params, tokens).z
  return general_sweep(
    model.model, model.params, tokens, Edits(z=(Edit(gates, value),)), metric,
    answer=jnp.asarray(pairs.answer_pos),
  )  # fmt: skip


def test_closed_gate_has_effect_exactly_zero_in_the_general_sweep():
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, [8, 8], [2, 3])
  gates = jnp.concatenate(
    [0 * edits.head_gates(GPT2)[:1], edits.head_gates(GPT2)]
  )
  other, _ = random_model(GPT2, seed=5, dtype="float32")
  tokens = jnp.asarray(pairs.clean)
  value = record(other.model, other.params, tokens).z
  metric = LogitDifference(jnp.asarray(pairs.answer), jnp.asarray(pairs.foil))
  sweep = general_sweep(
    model.model, model.params, tokens, Edits(z=(Edit(gates, value),)), metric,
    answer=jnp.asarray(pairs.answer_pos), rows=5,
  )  # fmt: skip
  assert (sweep.effect[0] == 0).all()
  assert (np.abs(sweep.effect[1:]) > 1e-5).all()


def test_own_value_has_no_effect_beyond_rounding_in_the_general_sweep():
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, [8, 8], [2, 3])
  sweep = own_value_sweep(model, pairs, edits.head_gates(GPT2))
  assert np.abs(sweep.effect).max() < 1e-5
