"""Is each direction's effect that of a whole forward with it replaced?"""

import dataclasses

import jax.numpy as jnp
import numpy as np
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

from headjax.geometry.designs import WriteDesign
from headjax.interventions.directions import patch_directions, rotation
from headjax.models.decoder import run, unembed
from headjax.models.sites import Edit, Edits

CASES = {
  "gpt2": GPT2,
  "llama windows": FAMILIES["llama_windows"],
  "axis": dataclasses.replace(
    GPT2, d_head=4, d_key=None, write=WriteDesign("axis", 0.3)
  ),
  "neox": PUBLIC["neox"],
  "gemma2": PUBLIC["gemma2"],
  "olmoe": PUBLIC["olmoe"],
  "screening": SCREENING,
}


def slow_effect(model, pairs, row, layer, site, basis, direction):
  """One prompt, one direction, by an edit of the whole forward."""
  n = pairs.lengths[row]
  clean, reference = (x[row][None, :n] for x in (pairs.clean, pairs.reference))
  _, here = run(model.model, model.params, clean)
  _, other = run(model.model, model.params, reference)
  value = np.array(getattr(here, site)[layer])
  wanted = np.asarray(getattr(other, site)[layer])[0, -1]
  if site == "attn_out":
    value[0, -1, direction] = wanted[direction]
  else:
    head, i = divmod(direction, model.config.d_head)
    r = np.eye(model.config.d_head)[i] if basis is None else basis[head][:, i]
    value[0, -1, head] += (wanted[head] - value[0, -1, head]) @ r * r
  gate = np.zeros((model.config.n_layers, *(1,) * value.ndim))
  gate[layer] = 1
  value = jnp.broadcast_to(jnp.asarray(value), (gate.shape[0], *value.shape))
  edits = Edits(**{site: (Edit(jnp.asarray(gate), value),)})
  results = []
  for these in (Edits(), edits):
    resid, _ = run(model.model, model.params, clean, these)
    logits = unembed(model.model, model.params, resid)[0, -1]
    results.append(float(logits[pairs.answer[row]] - logits[pairs.foil[row]]))
  return results[0] - results[1], results[0]


@pytest.mark.slow
@pytest.mark.parametrize(
  ("case", "site"),
  [(case, "attn_out") for case in CASES]
  + [("axis", "z"), ("axis", "rotated"), ("gemma2", "z"), ("screening", "z")],
)
def test_effects_are_those_of_whole_forwards(case, site, x64):
  model, _ = random_model(CASES[case])
  pairs = random_pairs(model.config, [6, 6], [5, 4])
  basis = None
  if site == "rotated":
    site, basis = "z", rotation(model.config.n_heads, model.config.d_head, 1)
  for layer in (0, 2):
    found = patch_directions(
      model, pairs, layer, site=site, basis=basis, examples=1
    )
    for row, direction in [(0, 0), (1, 3), (0, found.sizes["direction"] - 1)]:
      effect, base = slow_effect(
        model, pairs, row, layer, site, basis, direction
      )
      got = float(found.effect[row, direction])
      np.testing.assert_allclose(got, effect, rtol=1e-7, atol=1e-11)
      np.testing.assert_allclose(float(found.base[row]), base, atol=1e-10)
    assert np.abs(found.effect).max() > 1e-4


@pytest.mark.slow
def test_lengths_and_chunks_do_not_matter(x64, monkeypatch):
  model, _ = random_model(GPT2)
  pairs = random_pairs(GPT2, [8, 5, 7], [3, 1, 0])
  whole = patch_directions(model, pairs, 1)
  monkeypatch.setattr("headjax.interventions.directions.ROWS", 8)
  parts = patch_directions(model, pairs, 1, examples=1)
  np.testing.assert_allclose(whole.effect, parts.effect, atol=1e-12)
  one = slow_effect(model, pairs, 1, 1, "attn_out", None, 4)[0]
  np.testing.assert_allclose(float(whole.effect[1, 4]), one, atol=1e-11)


def test_equal_prompts_have_effects_of_exactly_nothing():
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, [6, 6], [-1, 2])
  for site in ("attn_out", "z"):
    effect = patch_directions(model, pairs, 1, site=site).effect.values
    np.testing.assert_array_equal(effect[0], 0)
    assert (effect[1] != 0).any()


def test_a_rotation_is_orthogonal_and_one_for_all_heads():
  found = rotation(3, 5, seed=2)
  np.testing.assert_allclose(found[0] @ found[0].T, np.eye(5), atol=1e-12)
  np.testing.assert_array_equal(found[0], found[2])
  assert np.abs(found[0] - rotation(3, 5, seed=3)[0]).max() > 0.1


def test_bad_questions_are_refused():
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, [6, 6], [1, 1])
  with refusal("site", "'q'"):
    patch_directions(model, pairs, 1, site="q")
  with refusal("layer", "3"):
    patch_directions(model, pairs, 3)
  with refusal("basis", "at site attn_out"):
    patch_directions(model, pairs, 1, basis=rotation(4, 5, 0))
  with refusal("basis", "orthonormal"):
    patch_directions(model, pairs, 1, site="z", basis=2 * rotation(4, 5, 0))
  both, _ = random_model(FAMILIES["tracr"], dtype="float32")
  with refusal("model", "both directions"):
    patch_directions(both, pairs, 1)
