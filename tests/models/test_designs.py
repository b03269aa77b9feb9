"""Do designed writes and reads enter the forward, and never the parameters?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import oracle
import orbax.checkpoint as ocp
import pytest
from helpers import random_model, random_pairs, random_tokens
from slow_params import slow_but

from headjax.geometry.designs import (
  ReadDesign,
  WriteDesign,
  output_scale,
  routing,
)
from headjax.interventions.heads import patch_heads
from headjax.models import weights
from headjax.models.config import ModelConfig
from headjax.models.decoder import run

# 16 = n, so that Kerdock members exist; 4 heads of 8 tile 32 = 16 x 2.
BASE = ModelConfig(3, 4, 32, 8, 24, 29, 12)
G = output_scale(32, 3)
LAYERS = (0, 1, 2)
AXIS = WriteDesign("axis", G)
ROTATED = WriteDesign("rotated", G, LAYERS)
ROUTED = WriteDesign("routed", G, routing=routing("split-cycle", 6, 4))
QUICK = ("all-rotated", "half-shared", "routed")
DESIGNS = {
  "axis": {"write": AXIS},
  "common": {"write": WriteDesign("rotated", G, (0, 0, 0))},
  "rotated": {"write": ROTATED},
  "truncated": {"write": WriteDesign("axis", G, live=5)},
  "routed": {"write": ROUTED, "n_heads": 6, "out_bias": False},
  "half-shared": {
    "write": WriteDesign("half_shared", G, LAYERS), "n_heads": 4,
  },
  "read-common": {"read": ReadDesign("block")},
  "all-axis": {"write": AXIS, "read": ReadDesign("block")},
  "all-rotated": {"write": ROTATED, "read": ReadDesign("block", (3, 4, 5))},
  "query-alone": {"read": ReadDesign("block", LAYERS, "Q")},
  "keys-values": {"write": AXIS, "read": ReadDesign("block", (), "KV")},
  "block-norm": {"write": AXIS, "read": ReadDesign("block_norm")},
  "adapter": {"write": AXIS, "value_adapter": 16},
}  # fmt: skip


def config_of(name):
  return dataclasses.replace(BASE, n_kv_heads=None, **DESIGNS[name])


def plain_weights(config, raw):
  """The weights of a plain model that writes the same, from dense matrices."""
  return raw | {"W_O": config.write.dense(config.sizes)}


@pytest.mark.parametrize(
  "name", [n for n, d in DESIGNS.items() if set(d) <= {"write", "n_heads",
                                                       "out_bias"}]
)  # fmt: skip
def test_a_designed_write_is_its_dense_matrix(name, x64):
  config = config_of(name)
  model, raw = random_model(config)
  assert "W_O" not in raw
  tokens = random_tokens(config, (2, 7))
  resid, acts = run(model.model, model.params, tokens)
  for i, row in enumerate(tokens):
    expected, _, seen = oracle.forward(config, plain_weights(config, raw), row)
    np.testing.assert_allclose(resid[i], expected, atol=1e-10, rtol=0)
    np.testing.assert_allclose(
      acts.attn_out[:, i], seen["attn_out"], atol=1e-10, rtol=0
    )


def slow_reads(config, raw, layer, resid):
  """q, k and v of one layer from dense bases, a head and a row at a time."""
  frames = config.read.dense(config.sizes)[layer]
  found = {letter: [] for letter in "QKV"}
  for x in resid:
    blocks = [x @ frame for frame in frames]
    if config.read.kind != "free":
      blocks = [
        norm(y) * raw["block_norm_gain"][layer, h]
        + raw["block_norm_bias"][layer, h]
        for h, y in enumerate(blocks)
      ]
    if config.read.kind == "block_norm":
      whole = np.concatenate(blocks)
    elif config.read.whole:
      whole = norm(x) * raw["attn_norm_gain"][layer]
      whole = whole + raw["attn_norm_bias"][layer]
    for letter in "QKV":
      W = raw[f"W_{letter}"][layer]
      if letter in config.read.blocks:
        heads = [blocks[h] @ W[h] for h in range(config.n_heads)]
      else:
        heads = [whole @ W[:, h] for h in range(config.n_heads)]
      found[letter].append(np.array(heads) + raw[f"b_{letter}"][layer])
    if config.value_adapter:
      hidden = whole @ raw["adapter_in"][layer]
      gelu = oracle._act("gelu_tanh", hidden)
      extra = gelu @ raw["adapter_out"][layer]
      found["V"][-1] = found["V"][-1] + extra.reshape(found["V"][-1].shape)
  return {letter: np.array(rows) for letter, rows in found.items()}


def norm(x):
  x = x - x.mean()
  return x / np.sqrt((x * x).mean() + 1e-5)


@pytest.mark.parametrize(
  "name", [n for n, d in DESIGNS.items() if {"read", "value_adapter"} & set(d)]
)
def test_designed_reads_are_those_of_dense_bases(name, x64):
  config = config_of(name)
  model, raw = random_model(config)
  tokens = random_tokens(config, (1, 5))
  _, acts = run(model.model, model.params, tokens)
  for layer in range(config.n_layers):
    slow = slow_reads(config, raw, layer, acts.resid_pre[layer, 0])
    for letter in "QKV":
      site = getattr(acts, letter.lower())[layer, 0]
      np.testing.assert_allclose(site, slow[letter], atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", ["rotated", "all-rotated", "half-shared"])
def test_changing_a_constant_of_the_design_changes_the_forward(name):
  config = config_of(name)
  model, _ = random_model(config, dtype="float32")
  tokens = random_tokens(config, (1, 5))
  before, _ = run(model.model, model.params, tokens)
  write = dataclasses.replace(config.write, members=(0, 1, 3))
  changed = dataclasses.replace(config, write=write)
  other = dataclasses.replace(model, config=changed)
  after, _ = run(other.model, other.params, tokens)
  assert np.abs(after - before).max() > 1e-3


@pytest.mark.parametrize("name", slow_but(QUICK, DESIGNS))
def test_frozen_matrices_have_no_gradient_and_no_place_in_the_tree(name):
  config = config_of(name)
  model, _ = random_model(config, dtype="float32")
  assert ("W_O" in weights.shapes(config)) == (not config.write.frozen)
  tokens = jnp.asarray(random_tokens(config, (1, 5)))

  def loss(params):
    return (run(model.model, params, tokens)[0] ** 2).sum()

  gradient = jax.grad(loss)(model.params)
  same = jax.tree.structure(gradient) == jax.tree.structure(model.params)
  assert same
  wasted = [
    path
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradient)
    if not np.abs(leaf).max() > 0
  ]
  # The unread rows of the embedding aside, every parameter matters: but a
  # key bias cancels in the softmax, and the final norm is not in the loss.
  names = {str(path[-1].key) for path in wasted}
  assert names <= {"b_K", "gain", "bias"}, names


@pytest.mark.parametrize("name", slow_but(QUICK, DESIGNS))
def test_both_sweeps_agree_on_every_design(name, x64):
  config = config_of(name)
  model, _ = random_model(config)
  pairs = random_pairs(config, [7, 5, 6], [3, 0, 2])
  suffix, general = (
    patch_heads(model, pairs, method, site="k")
    for method in ("suffix", "general")
  )
  np.testing.assert_allclose(suffix.effect, general.effect, atol=1e-10, rtol=0)
  assert np.abs(general.effect).max() > 1e-6


def test_matrices_per_head_are_those_of_the_design(x64):
  config = config_of("all-rotated")
  model, raw = random_model(config)
  W_O = weights.per_query_head(model.params, config, "W_O")
  np.testing.assert_allclose(W_O, config.write.dense(config.sizes))
  frames = config.read.dense(config.sizes)
  W_V = weights.per_query_head(model.params, config, "W_V")
  np.testing.assert_allclose(
    W_V[2, 1], frames[2, 1] @ raw["W_V"][2, 1], atol=1e-12
  )


@pytest.mark.parametrize("name", ["axis", "all-rotated", "half-shared"])
def test_optimiser_and_checkpoint_hold_no_frozen_matrix(name, tmp_path):
  config = config_of(name)
  model, _ = random_model(config, dtype="float32")
  with ocp.StandardCheckpointer() as checkpointer:
    checkpointer.save(tmp_path / "step", model.params)
    checkpointer.wait_until_finished()
    stored = checkpointer.restore(tmp_path / "step", model.params)
  learned = random_model(BASE, dtype="float32")[0].params
  for tree in (optax.adamw(1e-3).init(model.params), stored):
    assert "W_O" not in leaf_names(tree)
  assert "W_O" in leaf_names(optax.adamw(1e-3).init(learned))


def leaf_names(tree):
  """The last key of every leaf's path."""
  leaves = jax.tree_util.tree_leaves_with_path(tree)
  return {str(getattr(path[-1], "key", path[-1])) for path, _ in leaves}
