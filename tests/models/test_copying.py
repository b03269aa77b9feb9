"""Are the small matrix's eigenvalues those of the whole circuit?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import FAMILIES, SCREENING, random_model

from headjax.models import weights
from headjax.models.copying import copying_scores


def score(circuit):
  """Of a dense `[vocab, vocab]` map.

  Its zero eigenvalues come out as large as a root of the rounding errors.
  """
  values = np.linalg.eigvals(circuit)
  return pytest.approx(values.sum().real / np.abs(values).sum(), abs=1e-6)


@pytest.mark.parametrize("family", ["gpt2", "llama_kv2"])
def test_scores_are_those_of_the_dense_circuit(x64, family):
  config = FAMILIES[family]
  model, raw = random_model(config)
  found = copying_scores(model)
  assert found.shape == (config.n_layers, config.n_heads)
  W_U = raw["W_E"].T if config.tied else raw["W_U"]
  for layer, head in np.ndindex(found.shape):
    W_V = raw["W_V"][layer][:, head // config.group_size]
    W_O = raw["W_O"][layer, head]
    assert found[layer, head] == score(raw["W_E"] @ W_V @ W_O @ W_U)


def test_heads_that_copy_and_heads_that_do_the_opposite(x64):
  config = FAMILIES["gpt2"]
  model, raw = random_model(config)
  # With tied embeddings, W_E W_V (W_E W_V)^T has no negative eigenvalue.
  raw["W_O"] = np.einsum("ldhe->lhed", raw["W_V"]).copy()
  raw["W_O"][1] *= -1
  raw["W_O"][2, 3] = 0
  params = jax.tree.map(jnp.asarray, weights.pack(config, raw, "copying"))
  found = copying_scores(dataclasses.replace(model, params=params))
  np.testing.assert_allclose(found[0], 1, atol=1e-12)
  np.testing.assert_allclose(found[1], -1, atol=1e-12)
  assert np.isnan(found[2, 3]) and np.isfinite(found[2, :3]).all()


def test_screening_embeds_with_unit_rows(x64):
  model, raw = random_model(SCREENING)
  W_E = raw["W_E"] / np.linalg.norm(raw["W_E"], axis=1, keepdims=True)
  circuit = W_E @ raw["W_V"][1][:, 2] @ raw["W_O"][1, 2] @ W_E.T
  assert copying_scores(model)[1, 2] == score(circuit)
