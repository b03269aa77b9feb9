"""Are H and J those of slow forwards, and the outputs those of logits?"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import (
  FAMILIES,
  GPT2,
  PUBLIC,
  SCREENING,
  random_model,
  random_tokens,
)

from headjax.geometry.cores import core_from_rows, random_core
from headjax.interventions.projections import add, project
from headjax.models.decoder import run, unembed
from headjax.models.sites import Edit, Edits
from headjax.studies.cores.activations import activations
from headjax.studies.cores.extract import extract
from headjax.studies.cores.outputs import each, margin, outputs_under

CASES = {
  "gpt2": GPT2,
  "llama windows": FAMILIES["llama_windows"],
  "neox": PUBLIC["neox"],
  "gemma2": PUBLIC["gemma2"],
  "olmo2": PUBLIC["olmo2"],
  "olmoe": PUBLIC["olmoe"],
  "screening": SCREENING,
  "not causal": FAMILIES["tracr"],
}
LENGTHS = np.array([5, 3, 5])


def prompts(config):
  return random_tokens(config, (3, 5))


def slow_logits(model, row, edits=Edits()):
  """Logits at the end of one prompt, run by itself."""
  tokens = prompts(model.config)[row : row + 1, : LENGTHS[row]]
  gates = [leaf for leaf in jax.tree.leaves(edits) if leaf.ndim > 3]
  copies = max((leaf.shape[1] for leaf in gates), default=1)
  tokens = np.repeat(tokens, copies, axis=0)
  resid, _ = run(model.model, model.params, tokens, edits)
  logits = np.asarray(unembed(model.model, model.params, resid))[:, -1]
  return logits[0] if copies == 1 else logits


def slow_site(model, row, site, layer):
  tokens = prompts(model.config)[row : row + 1, : LENGTHS[row]]
  _, acts = run(model.model, model.params, tokens)
  return np.asarray(getattr(acts, site))[layer, 0, -1]


def replaced(model, row, site, layer, value):
  """The edit that sets a site at the last position, `[batch, ...]`."""
  n_layers = model.config.n_layers
  shape = (n_layers, len(value), LENGTHS[row], *value.shape[1:])
  gate, values = np.zeros(shape), np.zeros(shape)
  gate[layer, :, -1], values[layer, :, -1] = 1, value
  return Edits(**{site: (Edit(jnp.asarray(gate), jnp.asarray(values)),)})


def cases():
  """A few quickly, all of both sites when slow."""
  quick = [("gpt2", "resid_post")]
  for pair in itertools.product(CASES, ("resid_post", "z")):
    marks = () if pair in quick else pytest.mark.slow
    yield pytest.param(*pair, marks=marks, id=" ".join(pair))


@pytest.mark.parametrize(("name", "site"), list(cases()))
def test_the_core_is_that_of_finite_differences(x64, name, site):
  model, _ = random_model(CASES[name])
  config, outputs, layer, step = model.config, margin([3, 4], [7]), 1, 1e-5
  H, J = [], []
  for row in range(3):
    here = slow_site(model, row, site, layer)
    moves = step * np.eye(here.size).reshape(-1, *here.shape)
    values = here + np.concatenate([moves, -moves])
    logits = slow_logits(model, row, replaced(model, row, site, layer, values))
    up, down = np.split(logits[:, 3] + logits[:, 4] - logits[:, 7], 2)
    slope = (up - down) / (2 * step)
    H.append(here.ravel())
    J.append(slope.reshape(1, -1))
  found = extract(
    model, prompts(config), outputs, site=site, lengths=LENGTHS, examples=2
  )
  assert len(found) == config.n_layers
  expected = core_from_rows(np.array(H), np.array(J))
  np.testing.assert_allclose(found[layer].mean, np.mean(H, 0), atol=1e-12)
  np.testing.assert_allclose(
    found[layer].core.singular_values[:2], expected.singular_values[:2],
    rtol=1e-4,
  )  # fmt: skip
  top, other = (core.basis[:, :1] for core in (found[layer].core, expected))
  np.testing.assert_allclose(top @ top.T, other @ other.T, atol=1e-3)


def test_every_position_is_a_sample_when_asked(x64):
  model, _ = random_model(GPT2)
  tokens = prompts(GPT2)
  _, acts = run(model.model, model.params, tokens)
  valid = np.arange(5) < LENGTHS[:, None]
  expected = np.asarray(acts.resid_post)[1][valid]
  H = activations(
    model, tokens, 1, lengths=LENGTHS, every_position=True, examples=2
  )
  np.testing.assert_allclose(H, expected, atol=1e-12)
  found = extract(
    model, tokens, each(5), lengths=LENGTHS, every_position=True, jacobians=2,
    examples=2,
  )[1]  # fmt: skip
  assert (found.n, found.n_jacobians) == (13, 2)
  np.testing.assert_allclose(found.covariance, np.cov(H.T), atol=1e-12)


def test_behind_the_last_block_derivatives_are_the_unembedding(x64):
  model, raw = random_model(FAMILIES["tracr"])  # no norm: a linear tail
  found = extract(model, prompts(model.config), each(4), lengths=LENGTHS)[-1]
  W_U = raw["W_U"][:, :4]
  expected = core_from_rows(
    activations(model, prompts(model.config), 2, lengths=LENGTHS), W_U.T[None]
  )
  np.testing.assert_allclose(
    found.core.singular_values, expected.singular_values, rtol=1e-9
  )


@pytest.mark.parametrize("every", [False, True])
def test_outputs_under_an_edit_are_those_of_a_plain_forward(x64, every):
  model, _ = random_model(PUBLIC["gemma2"])
  tokens, Q = prompts(model.config), random_core(16, 2, 0)
  edits = project(model.config, 1, Q, "flip", mean=np.ones(16))
  found = outputs_under(
    model, tokens, each(model.config.d_vocab), edits, lengths=LENGTHS,
    every_position=every, examples=2,
  )  # fmt: skip
  for row, n in enumerate(LENGTHS):
    if every:
      expected = slow_logits(model, row, edits)
      np.testing.assert_allclose(found[row, n - 1], expected, atol=1e-10)
    else:
      x = slow_site(model, row, "resid_post", 1)
      value = x - 2 * (x - 1) @ Q @ Q.T
      edit = replaced(model, row, "resid_post", 1, value[None])
      expected = slow_logits(model, row, edit)
      np.testing.assert_allclose(found[row], expected, atol=1e-10)


def test_a_margin_is_a_difference_of_logits(x64):
  model, _ = random_model(GPT2)
  found = outputs_under(
    model, prompts(GPT2), margin([1, 2], [5]), lengths=LENGTHS
  )
  expected = [slow_logits(model, row) for row in range(3)]
  expected = [[x[1] + x[2] - x[5]] for x in expected]
  np.testing.assert_allclose(found, expected, atol=1e-10)
  same = outputs_under(
    model, prompts(GPT2), margin([1, 2], [5]), add(GPT2, 0, np.zeros(16)),
    lengths=LENGTHS,
  )  # fmt: skip
  np.testing.assert_array_equal(same, found)


def test_bad_input_is_refused():
  model, _ = random_model(PUBLIC["neox"], dtype="float32")
  tokens = prompts(model.config)
  with pytest.raises(ValueError, match="site: got resid_mid, in a block whose"):
    extract(model, tokens, each(2), site="resid_mid")
  with pytest.raises(ValueError, match="site: got 'pattern'"):
    extract(model, tokens, each(2), site="pattern")
  with pytest.raises(ValueError, match="jacobians: got 4; expected 1 to 3"):
    extract(model, tokens, each(2), jacobians=4)
