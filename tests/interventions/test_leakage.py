"""Is leakage that of every change, projected one by one?"""

import dataclasses

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
  random_pairs,
)
from one_line import refusal
from slow_params import slow_but

from headjax.geometry.designs import ReadDesign, WriteDesign, routing
from headjax.interventions.leakage import (
  change_covariance,
  leakage,
  write_error,
)
from headjax.models import spaces, weights
from headjax.models.decoder import run

AXIS = dataclasses.replace(
  GPT2, d_model=16, d_head=4, d_key=None, write=WriteDesign("axis", 0.3)
)
CASES = FAMILIES | {
  "neox": PUBLIC["neox"],
  "olmo": PUBLIC["olmo"],
  "olmoe": PUBLIC["olmoe"],
  "screening": SCREENING,
  "axis": AXIS,
  "live": dataclasses.replace(AXIS, write=WriteDesign("axis", 0.3, live=3)),
  "block": dataclasses.replace(AXIS, read=ReadDesign("block")),
  "value block": dataclasses.replace(AXIS, read=ReadDesign("block", (), "V")),
  "block norm": dataclasses.replace(AXIS, read=ReadDesign("block_norm")),
  "no mlp": dataclasses.replace(GPT2, mlp="none", d_mlp=0),
  "routed": dataclasses.replace(
    GPT2, n_heads=6, d_head=4, d_key=None, n_kv_heads=None,
    write=WriteDesign("routed", 0.3, routing=routing("sum-hub", 6, 4)),
  ),
}  # fmt: skip


def changes(model, pairs):
  """`[layer, head, row, d_head]`, padding cut off."""
  valid = np.arange(pairs.clean.shape[1]) < pairs.lengths[:, None]
  tokens = np.concatenate([pairs.clean, pairs.reference])
  _, acts = run(
    model.model, model.params, tokens, key_valid=np.tile(valid, (2, 1))
  )
  clean, reference = np.split(np.asarray(acts.z), 2, axis=1)
  return np.moveaxis((reference - clean)[:, valid], 2, 1)


def read_matrix(model, raw, letter, layer, head):
  """`[d_model, k]`: the folded map, from the stored weights."""
  config = model.config
  if letter in config.read.blocks:
    frame = config.read.dense(config.sizes)[layer, head]
    inner = raw["block_norm_gain"][layer, head][:, None]
    inner = inner * raw[f"W_{letter}"][layer, head]
    return frame @ (inner - inner.mean(0))
  W = raw[f"W_{letter}"]
  W = W[layer, :, head * W.shape[2] // config.n_heads]
  if config.read.kind == "block_norm":
    gain = raw["block_norm_gain"][layer]
    parts = (gain.reshape(-1)[:, None] * W).reshape(*gain.shape, -1)
    return (parts - parts.mean(1, keepdims=True)).reshape(W.shape)
  if config.norm == "none":
    return W
  if "attn_norm_gain" in raw:
    W = raw["attn_norm_gain"][layer][:, None] * W
  return W if config.norm == "rmsnorm" else W - W.mean(0)


def written(model, raw, layer, head):
  frozen = model.config.write.frozen
  dense = model.config.write.dense(model.config.sizes) if frozen else raw["W_O"]
  return dense[layer, head]


@pytest.mark.parametrize(
  "case", slow_but(["gpt2", "llama_kv2", "block norm", "screening"], CASES)
)
def test_leakage_is_the_share_of_projected_changes(case, x64):
  model, raw = random_model(CASES[case])
  config = model.config
  pairs = random_pairs(config, [8, 5, 7], [3, 1, 0])
  found = leakage(model, change_covariance(model, pairs, examples=2))
  dz = changes(model, pairs)
  letters = spaces.inputs(config)
  assert found.share.shape[0] == len(letters)
  for source, i, layer, j in np.ndindex(*2 * (config.n_layers, config.n_heads)):
    here = np.s_[:, source, i, layer, j]
    if layer <= source:
      assert np.isnan(found.share[here]).all()
      continue
    W_O = written(model, raw, source, i)
    delta = dz[source, i] @ W_O
    for n, letter in enumerate(letters):
      read = read_matrix(model, raw, letter, layer, j)
      onto = read @ np.linalg.pinv(read, rcond=1e-9)
      share = np.sum((delta @ onto) ** 2) / np.sum(delta**2)
      even = np.trace(onto @ W_O.T @ np.linalg.pinv(W_O.T))
      even = even / np.linalg.matrix_rank(W_O)
      np.testing.assert_allclose(found.share[here][n], share, atol=1e-9)
      np.testing.assert_allclose(found.isotropic[here][n], even, atol=1e-9)


def test_blocks_of_another_index_receive_exactly_nothing():
  model, _ = random_model(CASES["block"], dtype="float32")
  pairs = random_pairs(model.config, [8, 5], [3, 1])
  found = leakage(model, change_covariance(model, pairs))
  other = ~np.eye(4, dtype=bool)
  later = found.share[:, 0, :, 1]
  np.testing.assert_array_equal(later[:, other], 0)
  assert (later[:, ~other] > 0.01).all()
  # 63 of 64 dimensions in the paper, 3 of 4 here.
  own = found.isotropic[:, 0, :, 1][:, ~other]
  np.testing.assert_allclose(own, 3 / 4, rtol=1e-5)


def test_chunks_and_padding_do_not_matter(x64):
  """Eleven pairs on eight devices: the last chunk is filled up with repeats."""
  model, _ = random_model(GPT2)
  lengths = 4 + np.arange(11) % 4
  pairs = random_pairs(model.config, lengths, np.arange(11) % 3)
  found = change_covariance(model, pairs, examples=8)
  dz = changes(model, pairs)
  assert dz.shape[2] == lengths.sum()
  expected = np.einsum("lhre,lhrf->lhef", dz, dz)
  np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_equal_prompts_leak_nothing_and_say_so():
  """And leave the shares of other prompts in the same call as they are."""
  model, _ = random_model(FAMILIES["llama_kv2"], dtype="float32")
  covariances = [
    change_covariance(model, random_pairs(model.config, [6, 6], [i, i]))
    for i in (-1, 1, 3)
  ]
  np.testing.assert_array_equal(covariances[0], 0)
  found = leakage(model, np.stack(covariances))
  assert np.isnan(found.share[0]).all()
  assert np.isfinite(found.isotropic[:, 0, :, 1:]).all()
  for share, covariance in zip(found.share[1:], covariances[1:], strict=True):
    alone = leakage(model, covariance)
    np.testing.assert_allclose(share, alone.share, rtol=1e-5)
    np.testing.assert_allclose(found.isotropic, alone.isotropic, rtol=1e-6)
  assert not np.allclose(found.share[1], found.share[2], equal_nan=True)


@pytest.mark.parametrize("case", ["gpt2", "llama_kv2", "neox", "axis"])
def test_the_patched_output_is_the_clean_one_plus_the_change(case):
  model, _ = random_model(CASES[case], dtype="float32")
  pairs = random_pairs(model.config, [8, 8], [3, 1])
  error = write_error(model, pairs)
  assert 0 < error.relative < 2e-6
  _, acts = run(model.model, model.params, pairs.clean)
  size = float(jnp.abs(acts.attn_out).max())
  assert error.largest == pytest.approx(size * error.relative, rel=1e-4)


def test_a_write_that_is_not_the_change_is_noticed(monkeypatch):
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(model.config, [8, 5], [3, 1])
  true = weights.per_query_head
  monkeypatch.setattr(
    weights, "per_query_head", lambda *args: true(*args) * 1.001
  )
  jax.clear_caches()
  with refusal("patched attention output", "up to"):
    write_error(model, pairs)
  jax.clear_caches()


def test_norms_behind_the_heads_are_refused():
  model, _ = random_model(PUBLIC["gemma2"], dtype="float32")
  pairs = random_pairs(model.config, [6, 6], [1, 1])
  shape = (3, 4, model.config.d_head, model.config.d_head)
  with refusal("model", "a norm of the attention output"):
    leakage(model, jnp.ones(shape))
  with refusal("model", "a norm of the attention output"):
    write_error(model, pairs)


def test_bad_sizes_are_refused():
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(model.config, [6, 6], [1, 1])
  with refusal("examples", "0"):
    change_covariance(model, pairs, examples=0)
