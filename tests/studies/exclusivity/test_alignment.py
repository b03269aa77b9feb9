"""Do heads read their own writes as the slow definitions say?"""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import GPT2, LLAMA, SCREENING, random_model, random_tokens

from headjax import results
from headjax.geometry.designs import ReadDesign, WriteDesign
from headjax.models import weights
from headjax.models.decoder import run
from headjax.studies.exclusivity import alignment

MEMBERS = (3, 4, 5)
BASE = dataclasses.replace(GPT2, d_model=32, d_head=8, d_key=None)
AXIS = dataclasses.replace(BASE, write=WriteDesign("axis", 0.3))
SELF_READERS = {
  "all-common-axis": dataclasses.replace(AXIS, read=ReadDesign("block")),
  "all-rotated-self": dataclasses.replace(
    BASE, write=WriteDesign("rotated", 0.3, MEMBERS),
    read=ReadDesign("block", MEMBERS),
  ),
}  # fmt: skip


def slow_numbers(W_V, W_O):
  """PK, by projectors, and idempotence, by whole matrices, of one layer."""
  onto = [
    [x @ np.linalg.pinv(x) for x in (read, write.T)]
    for read, write in zip(W_V, W_O, strict=True)
  ]
  pk = np.array([[np.trace(r @ w) for _, w in onto] for r, _ in onto])
  idempotence = []
  for read, write in zip(W_V, W_O, strict=True):
    T = read @ write
    along = np.sum(T @ T * T)
    idempotence.append(along**2 / np.sum((T @ T) ** 2) / np.sum(T**2))
  return pk, idempotence


@pytest.mark.parametrize("config", [GPT2, AXIS, LLAMA, SCREENING])
def test_spaces_and_maps_are_compared_as_by_whole_matrices(config, x64):
  model, _ = random_model(config)
  found = alignment.measure(model)
  W_V, W_O = (
    np.asarray(weights.per_query_head(model.params, config, name))
    for name in ("W_V", "W_O")
  )
  for layer in range(config.n_layers):
    pk, idempotence = slow_numbers(W_V[layer], W_O[layer])
    here = found.sel(layer=layer)
    np.testing.assert_allclose(here.pk, pk, atol=1e-10)
    np.testing.assert_allclose(here.idempotence, idempotence, rtol=1e-8)
    own = np.diagonal(pk)
    np.testing.assert_allclose(here.rho_self, own / config.d_head, atol=1e-10)
    np.testing.assert_array_equal(here.own_best, own >= pk.max(1) - 1e-9)


def test_planted_self_readers_are_all_found(tmp_path):
  model, _ = random_model(AXIS, scale=1e-3, dtype="float32")
  W_O = np.asarray(weights.per_query_head(model.params, AXIS, "W_O"))
  planted = jnp.asarray(np.moveaxis(W_O, 2, -1)).transpose(0, 2, 1, 3)
  params = weights.replaced(
    model.params, {"W_V": weights.get(model.params, "W_V") - 5 * planted}
  )
  model = dataclasses.replace(model, params=params)
  found = alignment.measure(model, random_tokens(AXIS, (2, 6)))
  row = alignment.summarise(found)
  assert row["own_best"] == row["own_best_layer_0"] == 1
  assert row["rho_self"] > 0.99
  assert row["idempotence"] > 0.99
  assert row["chance"] == 0.25
  results.save(found, tmp_path / "alignment.nc")
  assert results.load(tmp_path / "alignment.nc").identical(found)


def test_layer_0_is_told_apart_and_gradients_are_counted():
  model, _ = random_model(GPT2, dtype="float32")
  found = alignment.measure(model)
  assert "own_gradient" not in alignment.summarise(found)
  best = np.zeros((3, 4), np.int8)
  best[0], best[1, 2] = 1, 1
  trace = np.zeros((3, 4, 4))
  trace[1, 2] = [0.5, 0.1, -0.9, 0.2]  # its own, by absolute value
  trace[1, 3] = [-0.5, 0.1, 0.9, 0.2]
  trace[[0, 2], :, 0], trace[1, :2, 0] = 1, 1  # of which two are of head 0
  found = found.assign(
    own_best=(alignment.SITES, best), trace=(alignment.WITHIN, trace)
  )
  row = alignment.summarise(found)
  assert (row["own_best_layer_0"], row["own_best"]) == (1, 1 / 8)
  assert row["own_gradient"] == pytest.approx((1 + 1 + 1 + 1) / 12)


@pytest.mark.parametrize("design", SELF_READERS)
def test_values_of_self_readers_never_leave_their_space(design, x64):
  """y = T(sum_j A_ij phi(P_S x_j)) + W_O b_V with T from S to S."""
  config = SELF_READERS[design]
  model, raw = random_model(config)
  tokens = random_tokens(config, (2, 6))
  _, acts = run(model.model, model.params, tokens)
  W_O = np.asarray(weights.per_query_head(model.params, config, "W_O"))
  frames = config.read.dense(config.sizes)
  for layer, head in np.ndindex(3, 4):
    S = frames[layer, head]
    block = np.asarray(acts.resid_pre[layer]) @ S  # of P_S x alone
    normed = block - block.mean(-1, keepdims=True)
    normed /= np.sqrt((normed**2).mean(-1, keepdims=True) + config.norm_eps)
    gain, bias = (
      raw[f"block_norm_{name}"][layer, head] for name in ("gain", "bias")
    )
    phi = (gain * normed + bias) @ S.T
    T = S @ raw["W_V"][layer, head] @ W_O[layer, head]
    mixed = np.asarray(acts.pattern[layer][:, head]) @ phi
    y = mixed @ T + raw["b_V"][layer, head] @ W_O[layer, head]
    written = np.asarray(acts.z[layer][:, :, head]) @ W_O[layer, head]
    np.testing.assert_allclose(written, y, atol=1e-10)
    np.testing.assert_allclose(y @ S @ S.T, y, atol=1e-10)
    np.testing.assert_allclose(S @ S.T @ T @ S @ S.T, T, atol=1e-10)
