"""Is an attribution the slope of the patch, and does its integral add up?"""

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import FAMILIES, PUBLIC, random_model, random_pairs
from one_line import refusal
from slow_params import slow_but

from headjax.interventions.attribution import attribute_heads
from headjax.interventions.edits import head_gates
from headjax.interventions.metrics import LogitDifference
from headjax.interventions.record import record
from headjax.interventions.sweep import at_answer, general_sweep
from headjax.models.decoder import run
from headjax.models.sites import Edit, Edits


def setting(family, seed=0):
  model, _ = random_model((FAMILIES | PUBLIC)[family], seed)
  pairs = random_pairs(model.config, [8, 5, 7], [3, 1, -1])
  return model, pairs


def effects_of(model, pairs, site, gate):
  """What patching every head alone does, with its gate open by `gate`."""
  value = getattr(record(model.model, model.params, pairs.reference), site)
  edit = Edit(gate * head_gates(model.config, site), value)
  return general_sweep(
    model.model,
    model.params,
    pairs.clean,
    Edits(**{site: (edit,)}),
    LogitDifference(jnp.asarray(pairs.answer), jnp.asarray(pairs.foil)),
    answer=jnp.asarray(pairs.answer_pos),
  ).effect


@pytest.mark.parametrize(
  ("family", "site"),
  [
    ("gpt2", "z"),
    ("llama_kv2", "k"),
    *slow_but(
      [], [("gpt2", "q"), ("gemma2", "z"), ("neox", "v"), ("olmoe", "k")]
    ),
  ],
)
def test_attribution_is_the_slope_of_the_effect(family, site, x64):
  model, pairs = setting(family)
  found = attribute_heads(model, pairs, site=site, examples=2).attribution
  step = 1e-6
  slope = effects_of(model, pairs, site, step) / step
  slope = np.moveaxis(slope, -1, 0).reshape(found.shape)
  np.testing.assert_allclose(found, slope, rtol=1e-4, atol=1e-7)
  assert np.abs(slope).max() > 1e-2
  np.testing.assert_array_equal(found[2], 0)  # equal prompts


@pytest.mark.slow
def test_integrated_attributions_add_up_to_patching_all_heads(x64):
  model, pairs = setting("gpt2")
  found = attribute_heads(model, pairs, steps=64)
  reference = record(model.model, model.params, pairs.reference)
  gate = jnp.ones((model.config.n_layers, 1, 1, 1, 1))
  edits = Edits(z=(Edit(gate, reference.z),))
  resid, _ = run(model.model, model.params, pairs.clean, edits)
  metric = LogitDifference(jnp.asarray(pairs.answer), jnp.asarray(pairs.foil))
  patched = metric(
    model.model, model.params, at_answer(resid, jnp.asarray(pairs.answer_pos))
  )
  total = found.attribution.sum(("layer", "head"))
  np.testing.assert_allclose(total, found.base - patched, atol=2e-3)
  single = attribute_heads(model, pairs).attribution.sum(("layer", "head"))
  assert np.abs(single - (found.base - patched)).max() > 1e-2


def test_bad_arguments_are_refused(x64):
  model, pairs = setting("gpt2")
  with refusal("site", "'resid_pre'"):
    attribute_heads(model, pairs, site="resid_pre")
  with refusal("steps", "-1"):
    attribute_heads(model, pairs, steps=-1)
