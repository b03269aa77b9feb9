"""Do the sweeps of a screening model compute one oracle forward per patch?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import screening_oracle
import slow_sweep
from helpers import SCREENING, random_model, random_pairs

from headjax.geometry.designs import WriteDesign
from headjax.interventions.heads import patch_heads
from headjax.interventions.record import alternative_z, record
from headjax.models import cost, weights

# One metric, so that the questions share a compiled sweep.
QUESTIONS = [
  ("z", "all", "reference", "logit_difference"),
  ("q", "all", "mean", "logit_difference"),
  ("k", "all", "reference", "logit_difference"),
  ("v", "all", "zero", "logit_difference"),
]


@pytest.fixture
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def check(config, question, method):
  model, w = random_model(config)
  pairs = random_pairs(config, [6, 8, 4], [3, 5, 2])
  site, position, ablation, metric = question
  data = patch_heads(
    model, pairs, method,
    site=site, position=position, ablation=ablation, metric=metric,
  )  # fmt: skip
  effect, base = slow_sweep.sweep(config, w, pairs, *question)
  assert np.abs(effect).max() > 1e-4, "the test would prove nothing"
  np.testing.assert_allclose(data.effect, effect, rtol=0, atol=1e-10)
  np.testing.assert_allclose(data.base, base, rtol=0, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("method", ["suffix", "general"])
def test_sweep_is_a_loop_of_oracle_forwards(x64, one_device, question, method):
  check(SCREENING, question, method)


def test_so_is_the_sweep_of_a_model_that_writes_on_the_axes(x64, one_device):
  write = WriteDesign("axis", scale=0.5)
  config = dataclasses.replace(SCREENING, write=write)
  check(config, QUESTIONS[0], "suffix")


def test_key_of_another_run_meets_the_gates_of_the_clean_one(x64):
  model, w = random_model(SCREENING)
  pairs = random_pairs(SCREENING, [8], [2])
  clean, other = (
    record(model.model, model.params, jnp.asarray(tokens))
    for tokens in (pairs.clean, pairs.reference)
  )
  mix = jax.jit(alternative_z, static_argnums=(0, 2))
  z = mix(model.model, model.params, "k", clean, other)
  line, layer = np.arange(8), 1
  for head in range(SCREENING.n_heads):
    want = screening_oracle.attend(
      SCREENING, w, layer, head, np.asarray(clean.resid_pre[layer, 0]),
      np.asarray(clean.q[layer, 0, :, head]),
      np.asarray(other.k[layer, 0, :, head]),
      np.asarray(clean.v[layer, 0, :, head]),
      line, line >= 0,
    )[-1]  # fmt: skip
    np.testing.assert_allclose(z[layer, 0, :, head], want, rtol=0, atol=1e-10)


def test_cost_counts_every_matrix_once():
  found = cost.block_cost(SCREENING)
  shapes = weights.shapes(SCREENING)
  sizes = {name: int(np.prod(shape[1:])) for name, shape in shapes.items()}
  assert found.q == sizes["W_Q"] + sizes["W_G"]
  assert found.kv == sizes["W_K"] + sizes["W_V"]
  assert found.o == sizes["W_O"]
  assert found.key == SCREENING.n_heads * (3 + 5)
