"""Is a row that goes on by itself the row of a whole edited forward?"""

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import (
  FAMILIES,
  GPT2,
  POST,
  PUBLIC,
  SCREENING,
  TRACR,
  random_model,
  random_tokens,
)
from one_line import refusal

from headjax.interventions import last_row
from headjax.models.decoder import run
from headjax.models.sites import Edit, Edits

LENGTHS = np.array([7, 4, 1])
SLOW = {
  "post": POST,
  "grouped": FAMILIES["llama_kv2"],
  "windows": FAMILIES["llama_windows"],
  "parallel": PUBLIC["neox"],
  "gemma2": PUBLIC["gemma2"],
  "experts": PUBLIC["olmoe"],
  "screening": SCREENING,
}
CASES = [
  pytest.param(GPT2, id="gpt2"),
  *(pytest.param(c, id=n, marks=pytest.mark.slow) for n, c in SLOW.items()),
]


@pytest.mark.parametrize("config", CASES)
def test_rows_are_those_of_whole_forwards(x64, config):
  model, _ = random_model(config)
  tokens = random_tokens(config, (3, 7))
  rng = np.random.default_rng(0)
  rows = rng.normal(size=(2, 3, config.d_model))
  before = last_row.prepare(
    model.model, model.params, jnp.asarray(tokens), jnp.asarray(LENGTHS)
  )
  for layer in range(config.n_layers):
    found = last_row.finish(model.model, model.params, before, layer, rows)
    for i, length in enumerate(LENGTHS):
      prompt = jnp.asarray(tokens[i : i + 1, :length])
      plain, _ = run(model.model, model.params, prompt)
      _, acts = run(model.model, model.params, prompt)
      np.testing.assert_allclose(
        before.streams[layer, i], acts.resid_post[layer, 0, -1], atol=1e-10
      )
      for n in range(2):
        gate = np.zeros((config.n_layers, 1, length, 1))
        gate[layer, 0, -1] = 1
        value = np.broadcast_to(rows[n, i], gate.shape[:-1] + rows.shape[-1:])
        edits = Edits(resid_post=(Edit(jnp.asarray(gate), jnp.array(value)),))
        whole, _ = run(model.model, model.params, prompt, edits)
        np.testing.assert_allclose(found[n, i], whole[0, -1], atol=1e-10)
        assert np.abs(whole[0, -1] - plain[0, -1]).max() > 1e-3


def test_models_that_look_ahead_are_refused():
  with refusal("model: got attention to later tokens"):
    last_row.check_causal(TRACR)
