"""Is the attribution of an edge the slope of the metric in its mask?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import GPT2, LLAMA, PUBLIC, random_model, random_pairs
from slow_params import slow_but

from headjax.interventions import nodes
from headjax.interventions.edge_attribution import attribute_edges
from headjax.interventions.graph import along, input_senders, run_graph, sent
from headjax.interventions.sweep import at_answer
from headjax.models import weights
from headjax.models.decoder import default_context, unembed_tokens
from headjax.models.load import LoadedModel

LENGTHS, FIRST = [6, 8, 5], [3, 5, 2]
LINEAR = dataclasses.replace(GPT2, norm="none", mlp="none", d_mlp=0)


def given(model, pairs):
  """What `run_graph` needs, and the metric."""
  valid = np.arange(pairs.clean.shape[1]) < pairs.lengths[:, None]
  corrupted = sent(model.model, model.params, pairs.reference, key_valid=valid)

  def difference(resid):
    rows = at_answer(resid, jnp.asarray(pairs.answer_pos))
    answer, foil = (
      unembed_tokens(model.model, model.params, rows, jnp.asarray(ids))
      for ids in (pairs.answer, pairs.foil)
    )
    return answer - foil

  @jax.jit
  def measure(mask):
    return difference(
      run_graph(
        model.model,
        model.params,
        pairs.clean,
        mask,
        corrupted,
        key_valid=valid,
      )  # fmt: skip
    )

  return valid, corrupted, difference, measure


@pytest.mark.parametrize("name", slow_but(["gpt2"], ["gpt2", "llama_kv2"]))
def test_attribution_is_the_slope_in_the_mask(x64, name):
  config = {"gpt2": GPT2, "llama_kv2": LLAMA}[name]
  model, _ = random_model(config)
  pairs = random_pairs(config, LENGTHS, FIRST)
  data = attribute_edges(model, pairs, examples=2)
  *_, measure = given(model, pairs)
  ones = jnp.ones(nodes.possible(config).shape)
  exact = jax.jit(jax.jacrev(measure))(ones)
  np.testing.assert_allclose(data.attribution, exact, rtol=0, atol=1e-10)
  np.testing.assert_allclose(data.base, measure(ones), rtol=0, atol=1e-10)
  largest = np.abs(data.attribution[0].values)
  for r, s in np.argwhere(largest >= np.sort(largest, axis=None)[-4]):
    step = np.zeros(ones.shape)
    step[r, s] = 1e-5
    slope = (measure(ones + step) - measure(ones - step)) / 2e-5
    np.testing.assert_allclose(data.attribution[:, r, s], slope, atol=1e-5)
    assert abs(slope[0]) > 1e-3, "the test would prove nothing"


@pytest.mark.slow
def test_the_integrated_form_averages_slopes_along_the_inputs(x64):
  """By differences, edge by edge, at the reference and half way."""
  model, _ = random_model(GPT2)
  pairs = random_pairs(GPT2, LENGTHS, FIRST)
  data = attribute_edges(model, pairs, steps=2)
  valid, corrupted, difference, _ = given(model, pairs)
  clean = sent(model.model, model.params, pairs.clean, key_valid=valid)
  context = default_context(pairs.clean, None, valid)
  shape = nodes.possible(GPT2).shape
  first = [
    input_senders(model.model, model.params, tokens, context)
    for tokens in (pairs.reference, pairs.clean)
  ]

  @jax.jit
  def measure(level, added):
    mixed = (1 - level) * first[0] + level * first[1]
    return difference(
      along(
        model.model,
        model.params,
        mixed,
        jnp.ones(shape),
        0 * clean,
        context,
        added=added,
      )  # fmt: skip
    )

  plain = attribute_edges(model, pairs).attribution
  assert np.abs(data.attribution - plain).max() > 1e-2
  for r, s in ((-1, 0), (12, 3), (5, 0), (26, 9)):
    step = jnp.zeros((shape[0], *clean.shape[1:]))
    step = step.at[r].set(1e-5 * (clean[s] - corrupted[s]))
    slopes = [
      (measure(level, step) - measure(level, -step)) / 2e-5
      for level in (0.0, 0.5)
    ]
    np.testing.assert_allclose(
      data.attribution[:, r, s], np.mean(slopes, axis=0), rtol=0, atol=1e-6
    )


def frozen_patterns():
  """A linear model: no norm, no MLP, scores that no stream changes."""
  model, _ = random_model(LINEAR)
  w = {name: weights.get(model.params, name) for name in weights.shapes(LINEAR)}
  w |= {name: 0 * w[name] for name in ("W_Q", "W_K")}
  return LoadedModel(LINEAR, weights.pack(LINEAR, w, "w"), None, "w", "0" * 64)


def test_effects_of_the_edges_of_a_cut_sum_to_the_total(x64):
  model = frozen_patterns()
  pairs = random_pairs(LINEAR, LENGTHS, FIRST)
  *_, measure = given(model, pairs)
  there = nodes.possible(LINEAR)
  ones = jnp.ones(there.shape)
  total = measure(ones) - measure(0 * ones)
  assert np.abs(total).min() > 1e-2, "the test would prove nothing"
  senders = np.array([node.layer for node in nodes.senders(LINEAR)])
  receivers = np.array(
    [
      9 if node.kind == "unembedding" else node.layer
      for node in nodes.receivers(LINEAR)
    ]
  )
  kinds = np.array([node.kind for node in nodes.senders(LINEAR)])
  cuts = {
    "into the logits": np.add.outer(receivers == 9, 0 * senders) > 0,
    "out of the embedding": (kinds == "embedding")[None]
    & (receivers >= 0)[:, None],
    "before layer 2": (senders < 2)[None] & (receivers >= 2)[:, None],
  }
  effect = jax.jit(jax.vmap(lambda mask: measure(ones) - measure(mask)))
  attribution = attribute_edges(model, pairs).attribution.values
  for name, cut in cuts.items():
    edges = np.argwhere(cut & there)
    masks = np.ones((len(edges), *there.shape))
    masks[np.arange(len(edges)), edges[:, 0], edges[:, 1]] = 0
    found = effect(masks).sum(0)
    np.testing.assert_allclose(found, total, rtol=0, atol=1e-10, err_msg=name)
    slopes = attribution[:, edges[:, 0], edges[:, 1]].sum(1)
    np.testing.assert_allclose(slopes, total, rtol=0, atol=1e-10, err_msg=name)


def test_the_result_is_labelled():
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, LENGTHS, FIRST)
  data = attribute_edges(model, pairs, steps=1)
  assert data.attribution.dims == ("example", "receiver", "sender")
  assert data.attribution.sel(receiver="L0H1.K", sender="L1.mlp").max() == 0
  assert np.abs(data.attribution.sel(receiver="L2H0.V", sender="L1.mlp")).min()
  assert data.attrs["method"] == "integrated edge gradient"
  assert data.attrs["steps"] == 1


def test_what_cannot_be_done_is_refused():
  model, _ = random_model(PUBLIC["gemma2"], dtype="float32")
  pairs = random_pairs(PUBLIC["gemma2"], LENGTHS, FIRST)
  with pytest.raises(ValueError, match="cannot be split"):
    attribute_edges(model, pairs)
  model, _ = random_model(GPT2, dtype="float32")
  with pytest.raises(ValueError, match="steps: got -1"):
    attribute_edges(model, random_pairs(GPT2, LENGTHS, FIRST), steps=-1)
