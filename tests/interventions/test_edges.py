"""Is a patched edge one whole forward with that one input changed?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_edges
from helpers import (
  FAMILIES,
  GPT2,
  PUBLIC,
  SCREENING,
  random_model,
  random_pairs,
)

from headjax.geometry.designs import ReadDesign, WriteDesign
from headjax.interventions import chunks, cost
from headjax.interventions.edge_lists import all_edges, sample_edges
from headjax.interventions.edges import patch_edges
from headjax.models.config import ModelConfig
from headjax.models.decoder import run, unembed
from headjax.models.sites import Edit, Edits

LENGTHS, FIRST = [6, 8, 3, 8], [3, 5, 2, -1]
TILED = dataclasses.replace(GPT2, d_head=4, d_key=4)
BLOCKS = dataclasses.replace(
  TILED, read=ReadDesign("block"), write=WriteDesign("axis", scale=0.7)
)
SLOW = pytest.mark.slow
KINDS = FAMILIES | PUBLIC | {"screening": SCREENING}


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def strong(config):
  """A model whose edges matter, and its weights."""
  scale = 0.3 if config.norm == "none" else 0.4
  if config.attention == "screening":
    scale = 1.0
  return random_model(config, scale=scale)


@pytest.mark.parametrize(
  "kind",
  [
    "gpt2",
    *(
      pytest.param(kind, marks=SLOW)
      for kind in ("gemma2", "llama_kv2", "llama_windows", "neox", "olmo2",
                   "olmo", "olmoe", "screening", "tracr")
    ),
  ],
)  # fmt: skip
def test_edges_are_a_loop_of_oracle_forwards(x64, kind):
  config = KINDS[kind]
  model, w = strong(config)
  pairs = random_pairs(config, LENGTHS, FIRST)
  edges = sample_edges(all_edges(config), 0.2, seed=1)
  found = patch_edges(model, pairs, edges=edges).kl.values
  slow = slow_edges.divergences(config, w, pairs, edges)
  assert np.median(slow[:3].max(0)) > 1e-7, "the test would prove nothing"
  np.testing.assert_allclose(found, slow, rtol=0, atol=1e-10)
  assert (found[3] == 0).all(), "its two prompts are equal"


def by_whole_forwards(model, pairs, edges):
  """The same with the model's own forward and its edits of q, k and v."""
  tokens, reference = jnp.asarray(pairs.clean), jnp.asarray(pairs.reference)
  resid, acts = run(model.model, model.params, tokens)
  _, other = run(model.model, model.params, reference)
  rows, answer = np.arange(len(pairs)), pairs.answer_pos
  found = []
  for source_layer, source_head, layer, head, letter in edges:
    z = acts.z.at[source_layer, :, :, source_head].set(
      other.z[source_layer, :, :, source_head]
    )
    gate = np.zeros((model.config.n_layers, 1, 1, 1, 1))
    gate[source_layer] = 1
    _, written = run(
      model.model, model.params, tokens, Edits(z=(Edit(gate, z),))
    )
    gain = (written.attn_out - acts.attn_out)[source_layer]
    gate = np.zeros((model.config.n_layers, 1, 1, 1))
    gate[layer] = 1
    stream = jnp.broadcast_to(
      acts.resid_pre[layer] + gain, acts.resid_pre.shape
    )
    _, moved = run(
      model.model, model.params, tokens, Edits(resid_pre=(Edit(gate, stream),))
    )
    site = "qkv"[letter]
    gate = np.zeros((model.config.n_layers, 1, 1, model.config.n_heads, 1))
    gate[layer, ..., head, :] = 1
    edit = Edit(jnp.asarray(gate), getattr(moved, site))
    patched, _ = run(
      model.model, model.params, tokens, Edits(**{site: (edit,)})
    )
    log_p, log_q = (
      jax.nn.log_softmax(
        unembed(model.model, model.params, x[rows, answer]), axis=-1
      )
      for x in (resid, patched)
    )
    found.append((jnp.exp(log_p) * (log_p - log_q)).sum(-1))
  return np.stack(found, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(
  "config",
  [
    dataclasses.replace(BLOCKS, read=ReadDesign("block", restricted="QV")),
    dataclasses.replace(TILED, value_adapter=6, read=ReadDesign("block_norm")),
  ],
)
def test_designed_readers_are_patched_as_by_whole_forwards(x64, config):
  model, _ = random_model(config)
  pairs = random_pairs(config, LENGTHS, FIRST)
  edges = all_edges(config)
  own = edges[:, 1] == edges[:, 3]
  edges = np.concatenate([edges[own][::4], edges[~own][::20]])
  found = patch_edges(model, pairs, edges=edges).kl.values
  slow = by_whole_forwards(model, pairs, edges)
  assert slow[:3].max() > 1e-6, "the test would prove nothing"
  np.testing.assert_allclose(found, slow, rtol=0, atol=1e-10)


def test_a_reader_whose_input_stays_has_exactly_no_effect():
  """In float32, where two programs would differ in the last bits."""
  model, _ = random_model(BLOCKS, dtype="float32")
  pairs = random_pairs(BLOCKS, LENGTHS, FIRST)
  edges = all_edges(BLOCKS)
  kl = patch_edges(model, pairs, edges=edges).kl.values[:3]
  own = edges[:, 1] == edges[:, 3]
  assert (kl[:, ~own] == 0).all()
  assert (kl[:, own].max(0) > 0).all()


def test_a_rotated_block_that_is_missed_has_exactly_no_effect():
  """The write misses it by design, but not in its last bits."""
  config = dataclasses.replace(
    BLOCKS, n_heads=12, n_kv_heads=12, d_head=16, d_key=16, d_model=192,
    write=WriteDesign("rotated", members=(1, 1, 1)),
    read=ReadDesign("block", members=(1, 1, 1)),
  )  # fmt: skip
  model, _ = random_model(config, scale=0.1, dtype="float32")
  pairs = random_pairs(config, LENGTHS, FIRST)
  edges = all_edges(config)
  own = edges[:, 1] == edges[:, 3]
  edges = np.concatenate([edges[own][::18], edges[~own][::100]])
  kl = patch_edges(model, pairs, edges=edges).kl.values[:3]
  assert (kl[:, 6:] == 0).all()
  assert (kl[:, :6].max(0) > 0).all()


@pytest.mark.slow
def test_chunks_and_devices_do_not_matter(x64, monkeypatch):
  model, _ = strong(GPT2)
  pairs = random_pairs(GPT2, [6, 8, 3, 8, 5], [3, 5, 2, 7, 1])
  edges = sample_edges(all_edges(GPT2), 0.3)
  plans, plan = [], chunks.plan_rows

  def noted(*args, **kwargs):
    plans.append(plan(*args, **kwargs))
    return plans[-1]

  monkeypatch.setattr(chunks, "plan_rows", noted)
  whole = patch_edges(model, pairs, edges=edges).kl
  monkeypatch.setattr(jax, "local_device_count", lambda: 4)
  monkeypatch.setattr(chunks, "BUSY", 30)
  spread = patch_edges(model, pairs, edges=edges).kl
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  parts = patch_edges(model, pairs, edges=edges[::-1]).kl[:, ::-1]
  assert plans[0].examples == 5 and plans[1].examples == 8
  assert plans[2].examples * plans[2].heads < len(edges)
  for other in (spread, parts):
    np.testing.assert_allclose(other, whole, rtol=0, atol=1e-12)


def test_all_edges_are_there_once():
  edges = all_edges(ModelConfig(12, 12, 16, 5, 24, 29, 12))
  assert len(edges) == 28_512
  assert len(np.unique(edges, axis=0)) == len(edges)
  assert (edges[:, 0] < edges[:, 2]).all()
  chosen = all_edges(GPT2, layers=[0, 2])
  assert set(chosen[:, 0]) == {0} and set(chosen[:, 2]) == {2}
  assert len(chosen) == 4 * 4 * 3


def test_a_sample_is_seeded_and_keeps_the_order():
  edges = all_edges(GPT2)
  one, same, other = (sample_edges(edges, 0.25, seed) for seed in (0, 0, 1))
  np.testing.assert_array_equal(one, same)
  assert len(one) == 36 and not np.array_equal(one, other)
  place = [np.flatnonzero((edges == edge).all(1)).item() for edge in one]
  assert place == sorted(place)


@pytest.mark.parametrize(
  ("options", "parts"),
  [
    ({"edges": np.array([[1, 0, 1, 0, 0]])}, ["edges", "[1, 0, 1, 0, 0]"]),
    ({"edges": np.array([[0, 0, 1, 0, 3]])}, ["edges", "[0, 0, 1, 0, 3]"]),
    ({"edges": np.array([[0, 4, 1, 0, 0]])}, ["edges", "source_head"]),
    ({"edges": np.zeros((0, 5), int)}, ["edges", "(0, 5)"]),
    ({"edges": np.zeros((2, 5))}, ["edges", "float64"]),
    ({"layers": [0, 3]}, ["layers", "[3]", "0 to 2"]),
    ({"edges": all_edges(GPT2), "layers": [0]}, ["layers", "one of them"]),
    ({"budget_bytes": 10}, ["budget_bytes", "at least"]),
  ],
)
def test_bad_requests_are_refused(options, parts):
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, LENGTHS, FIRST)
  with pytest.raises(ValueError) as error:
    patch_edges(model, pairs, **options)
  for part in parts:
    assert part in str(error.value)


@pytest.mark.parametrize("share", [0, 1.5])
def test_a_share_that_is_none_is_refused(share):
  with pytest.raises(ValueError, match="share"):
    sample_edges(all_edges(GPT2), share)


def test_edges_know_where_they_came_from():
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, LENGTHS, FIRST)
  edges = np.array([[0, 1, 2, 3, 1], [0, 0, 1, 2, 2]])
  data = patch_edges(model, pairs, edges=edges)
  assert data.kl.dims == ("example", "edge") and data.kl.units == "nats"
  assert data["input"].values.tolist() == ["K", "V"]
  assert data["source_head"].values.tolist() == [1, 0]
  assert data["head"].values.tolist() == [3, 2]
  assert data.attrs["metric"] == "kl" and data.attrs["pairs_digest"]


def test_the_floor_counts_every_part_once():
  """By hand: 2 layers, one prompt of 5 tokens that differ from the second."""
  config = dataclasses.replace(GPT2, n_heads=2, n_kv_heads=2)
  d, h, e, m, v = 16, 2, 5, 24, 29
  qkv, o, mlp = d * h * e, h * e * d, 2 * d * m
  rows, seen = 4, 2 + 3 + 4 + 5
  reader = rows * d * e + seen * 2 * e
  last_layer = rows * 2 * qkv + qkv + o + mlp + 5 * 2 * h * e
  to_last = reader + e * d + mlp + d * v
  to_middle = reader + rows * (e * d + mlp) + last_layer + d * v
  forward = 3 * (5 * (3 * qkv + o + mlp) + 15 * 2 * h * e)
  got = cost.edge_sweep(
    config, np.array([1]), np.array([4]), np.array([1, 2, 2])
  )
  assert got == to_middle + 2 * to_last + 2 * forward
