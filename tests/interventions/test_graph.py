"""Is a graph of all edges the model, and of some what a slow loop says?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_graph
from helpers import FAMILIES, GPT2, PUBLIC, SCREENING, random_model

from headjax.geometry.designs import ReadDesign, WriteDesign
from headjax.interventions import nodes
from headjax.interventions.graph import Resume, run_graph, sent
from headjax.models.decoder import run

TILED = dataclasses.replace(GPT2, d_head=4, d_key=4)
KINDS = (
  FAMILIES
  | PUBLIC
  | {
    "screening": SCREENING,
    "blocks": dataclasses.replace(
      TILED, read=ReadDesign("block", restricted="QV"),
      write=WriteDesign("axis", scale=0.7),
    ),
    "adapter": dataclasses.replace(
      TILED, value_adapter=6, read=ReadDesign("block_norm")
    ),
    "no_mlp": dataclasses.replace(GPT2, mlp="none", d_mlp=0),
  }
)  # fmt: skip
SLOW = pytest.mark.slow


def setting(kind, n_pos=6):
  """A model, its weights, clean and reference tokens, and a random mask."""
  config = KINDS[kind]
  model, w = random_model(config, scale=0.15 if config.norm == "none" else 0.4)
  rng = np.random.default_rng(1)
  clean, reference = rng.integers(0, config.d_vocab, (2, 3, n_pos))
  mask = rng.random(nodes.possible(config).shape)
  # Present, absent and in between.
  return model, w, clean, reference, np.round(1.4 * mask - 0.2, 1).clip(0, 1)


@pytest.mark.parametrize(
  "kind",
  ["gpt2", "neox", "olmoe", "blocks", "screening"]
  + [
    pytest.param(kind, marks=SLOW)
    for kind in ("adapter", "llama_kv2", "llama_windows", "no_mlp", "olmo",
                 "tracr")
  ],
)  # fmt: skip
def test_all_edges_are_the_model(x64, kind):
  model, _, clean, reference, _ = setting(kind)
  valid = jnp.asarray(np.arange(6) < np.array([[6], [4], [5]]))
  corrupted = sent(model.model, model.params, reference, key_valid=valid)
  ones = jnp.ones(nodes.possible(model.config).shape)
  found, none = (
    jax.jit(run_graph, static_argnums=0)(
      model.model, model.params, clean, mask, corrupted, key_valid=valid
    )
    for mask in (ones, 0 * ones)
  )
  for tokens, got in ((clean, found), (reference, none)):
    resid, _ = run(model.model, model.params, tokens, key_valid=valid)
    np.testing.assert_allclose(got, resid, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
  "kind",
  ["gpt2"]
  + [
    pytest.param(kind, marks=SLOW)
    for kind in ("llama_kv2", "llama_windows", "neox", "no_mlp", "olmo",
                 "olmoe_normed", "tracr")
  ],
)  # fmt: skip
def test_some_edges_are_a_slow_loop_over_streams(x64, kind):
  model, w, clean, reference, mask = setting(kind)
  config = model.config
  found = run_graph(
    model.model, model.params, clean, mask,
    sent(model.model, model.params, reference),
  )  # fmt: skip
  plain, _ = run(model.model, model.params, clean)
  assert np.abs(found - plain).max() > 1e-3, "the test would prove nothing"
  for i, (tokens, others) in enumerate(zip(clean, reference, strict=True)):
    corrupted, _ = slow_graph.forward(config, w, others)
    _, resid = slow_graph.forward(config, w, tokens, mask, corrupted)
    np.testing.assert_allclose(found[i], resid, rtol=0, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gpt2", pytest.param("neox", marks=SLOW)])
def test_a_run_may_resume_where_edges_begin_to_lack(x64, kind):
  model, _, clean, reference, mask = setting(kind)
  layers = np.array(
    [node.layer for node in nodes.receivers(model.config)[:-1]] + [99]
  )
  mask = np.where((layers >= 1)[:, None], mask, 1)
  given = (model.model, model.params)
  corrupted = sent(*given, reference)
  resume = Resume(jnp.asarray(1), sent(*given, clean))
  whole = run_graph(*given, clean, mask, corrupted)
  rest = run_graph(*given, clean, mask, corrupted, resume=resume)
  np.testing.assert_allclose(rest, whole, rtol=0, atol=1e-12)
  resume = Resume(jnp.asarray(2), resume.sent)
  wrong = run_graph(*given, clean, mask, corrupted, resume=resume)
  assert np.abs(wrong - whole).max() > 1e-6


def test_what_is_sent_adds_up_to_the_stream(x64):
  model, w, clean, *_ = setting("gpt2")
  found = sent(model.model, model.params, clean)
  resid, _ = run(model.model, model.params, clean)
  np.testing.assert_allclose(
    np.asarray(found.sum(0)) + w["b_O"].sum(0), resid, rtol=0, atol=1e-12
  )


@pytest.mark.slow
def test_impossible_edges_do_not_matter(x64):
  model, _, clean, reference, mask = setting("gpt2")
  other = np.where(nodes.possible(model.config), mask, 7.0)
  corrupted = sent(model.model, model.params, reference)
  one, two = (
    run_graph(model.model, model.params, clean, m, corrupted)
    for m in (mask, other)
  )
  np.testing.assert_array_equal(one, two)


def test_models_that_norm_what_parts_write_are_refused():
  for kind in ("gemma2", "olmo2"):
    model, _ = random_model(KINDS[kind], dtype="float32")
    with pytest.raises(ValueError, match="cannot be split"):
      sent(model.model, model.params, np.zeros((1, 3), int))
    with pytest.raises(ValueError, match="cannot be split"):
      run_graph(
        model.model, model.params, np.zeros((1, 3), int), np.ones(3), None
      )


def test_shapes_that_do_not_fit_are_refused():
  model, _ = random_model(GPT2, dtype="float32")
  clean = np.zeros((3, 6), int)
  mask = np.ones(nodes.possible(GPT2).shape)
  corrupted = np.zeros((mask.shape[1], *clean.shape, 16))
  with pytest.raises(ValueError, match="mask: got shape"):
    run_graph(model.model, model.params, clean, mask[:-1], corrupted)
  with pytest.raises(ValueError, match="corrupted: got shape"):
    run_graph(model.model, model.params, clean, mask, corrupted[1:])
