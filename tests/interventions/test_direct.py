"""Is the closed form what is left when everything after the head is held?"""

import dataclasses

import jax
import jax.numpy as jnp
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

from headjax import results
from headjax.geometry.designs import ReadDesign, WriteDesign
from headjax.interventions import chunks
from headjax.interventions.direct import direct_effects
from headjax.interventions.edits import head_gates
from headjax.interventions.metrics import LogitDifference
from headjax.interventions.sweep import general_sweep
from headjax.models.decoder import run
from headjax.models.sites import Edit, Edits

WIDE = dataclasses.replace(GPT2, d_model=20)
DESIGNED = {
  "axis": dataclasses.replace(WIDE, write=WriteDesign("axis", 0.3)),
  "blocks": dataclasses.replace(
    WIDE, write=WriteDesign("axis", 0.3), read=ReadDesign("block")
  ),
  "screening": SCREENING,
  "experts": PUBLIC["olmoe"],
}
FOR_THE_ORACLE = {
  name: (FAMILIES | PUBLIC)[name]
  for name in ("gpt2", "llama_kv2", "tracr", "neox", "gemma2")
}


def few(names, quick):
  """All names, but only some of them in the quick run."""
  slow = pytest.mark.slow
  return [n if n in quick else pytest.param(n, marks=slow) for n in names]


@pytest.fixture
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def slow_direct(config, w, pairs):
  """Only what the head's layer adds to the clean final stream changes."""
  effect = np.zeros((len(pairs), config.n_layers, config.n_heads))
  W_U = w["W_E"].T if config.tied else w["W_U"]
  for i, n in enumerate(pairs.lengths):
    clean, reference = pairs.clean[i, :n], pairs.reference[i, :n]
    resid, logits, acts = oracle.forward(config, w, clean)
    z = oracle.forward(config, w, reference)[2]["z"]
    for layer, head in np.ndindex(effect.shape[1:]):
      patch = {(layer, head): z[layer][:, head]}
      other = oracle.forward(config, w, clean, z_patch=patch)[2]["attn_out"]
      moved = resid + other[layer] - acts["attn_out"][layer]
      y = oracle._norm(
        config, moved, w.get("final_norm_gain"), w.get("final_norm_bias")
      )
      changed = oracle._cap(y @ W_U, config.logit_cap)
      drop = logits[-1] - changed[-1]
      effect[i, layer, head] = drop[pairs.answer[i]] - drop[pairs.foil[i]]
  return effect


def held(model, pairs):
  """The same with edits that hold everything later at its clean value."""
  config, params = model.config, model.params
  n, L, H = config.n_layers * config.n_heads, config.n_layers, config.n_heads
  acts = run(model.model, params, pairs.clean)[1]
  reference = run(model.model, params, pairs.reference)[1]
  source = np.arange(n)[:, None] // H
  later = np.arange(L)[None] > source
  rank4 = (n, L, 1, 1, 1)
  edits = Edits(
    z=(Edit(head_gates(config), reference.z),),
    attn_out=(Edit(jnp.asarray(later.reshape(rank4), float), acts.attn_out),),
  )
  if config.mlp != "none":
    gate = (np.arange(L)[None] >= source).reshape(rank4)
    edit = Edit(jnp.asarray(gate, float), acts.mlp_out)
    edits = dataclasses.replace(edits, mlp_out=(edit,))
  metric = LogitDifference(jnp.asarray(pairs.answer), jnp.asarray(pairs.foil))
  sweep = general_sweep(
    model.model, params, pairs.clean, edits, metric, answer=pairs.answer_pos
  )
  return np.moveaxis(sweep.effect, 0, 1).reshape(-1, L, H)


@pytest.mark.parametrize("name", few(FOR_THE_ORACLE, ("gpt2", "gemma2")))
def test_direct_is_the_closed_form_through_the_final_norm(
  x64, one_device, name
):
  config = FOR_THE_ORACLE[name]
  model, w = random_model(config, scale=0.15 if name == "tracr" else 0.4)
  pairs = random_pairs(config, [6, 8, 3], [3, 5, 0])
  found = direct_effects(model, pairs)
  wanted = slow_direct(config, w, pairs)
  assert np.abs(wanted).max() > 1e-3, "the test would prove nothing"
  np.testing.assert_allclose(found.effect, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", few(DESIGNED, ("blocks",)))
def test_direct_is_what_is_left_when_all_is_held(x64, one_device, name):
  config = DESIGNED[name]
  model, _ = random_model(config)
  pairs = random_pairs(config, [7, 7], [3, 5])
  found = direct_effects(model, pairs)
  wanted = held(model, pairs)
  assert np.abs(wanted).max() > 1e-4, "the test would prove nothing"
  np.testing.assert_allclose(found.effect, wanted, rtol=0, atol=1e-10)


def test_chunks_change_nothing_and_the_result_is_labelled(one_device):
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, [6, 8, 3, 5, 4], [3, 5, 0, 2, 1])
  two = chunks.plan(
    GPT2, n_examples=2, n_pos=8, width=8, itemsize=4, budget_bytes=2**30
  )
  whole = direct_effects(model, pairs)
  least = direct_effects(model, pairs, budget_bytes=two.n_bytes)
  assert least.attrs["chunk"] == 2
  np.testing.assert_allclose(least.effect, whole.effect, atol=2e-5)
  assert whole.effect.dims == ("example", "layer", "head")
  assert whole.attrs["path"] == "direct"
  assert results.MARK in whole.attrs


def test_a_budget_that_is_too_small_is_refused():
  model, _ = random_model(GPT2, dtype="float32")
  with refusal("budget_bytes", "100"):
    direct_effects(model, random_pairs(GPT2, [6], [3]), budget_bytes=100)
