"""Are gradients in the attention outputs the slopes of the answer?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import FAMILIES, GPT2, PUBLIC, random_model, random_pairs
from one_line import refusal
from oracle import forward

from headjax.geometry.designs import WriteDesign
from headjax.interventions.gradients import (
  attn_out_gradient,
  gradient_products,
)
from headjax.models import weights
from headjax.models.decoder import run, unembed
from headjax.models.sites import Edit, Edits

AXIS = dataclasses.replace(
  GPT2, d_head=4, d_key=None, write=WriteDesign("axis", 0.3)
)


def difference(model, pairs, row, tokens, edits=Edits()):
  """The logit difference of one prompt, by the whole vocabulary."""
  resid, _ = run(model.model, model.params, tokens, edits)
  logits = unembed(model.model, model.params, resid)[0, -1]
  return float(logits[pairs.answer[row]] - logits[pairs.foil[row]])


def slow_gradient(model, pairs, row, layer, number, step=1e-6):
  """`[pos, d_model]` by differences, one coordinate moved at a time."""
  n = pairs.lengths[row]
  tokens = pairs.clean[row][None, :n]
  _, acts = run(model.model, model.params, tokens)
  gate = jnp.zeros((model.config.n_layers, 1, 1, 1)).at[layer].set(1)
  found = np.zeros((n, model.config.d_model))
  for place in np.ndindex(found.shape):
    ends = []
    for sign in (1, -1):
      value = acts.attn_out.at[(layer, 0, *place)].add(sign * step)
      edits = Edits(attn_out=(Edit(gate, value),))
      ends.append(number(model, pairs, row, tokens, edits))
    found[place] = (ends[0] - ends[1]) / (2 * step)
  return found


def loss(model, pairs, row, tokens, edits=Edits()):
  resid, _ = run(model.model, model.params, tokens, edits)
  log_p = jax.nn.log_softmax(unembed(model.model, model.params, resid)[0])
  return -float(log_p[np.arange(tokens.shape[1] - 1), tokens[0, 1:]].sum())


def slow_products(model, pairs, number):
  """Both tables of products from gradients by differences."""
  config = model.config
  tau = [
    np.concatenate(
      [
        slow_gradient(model, pairs, row, layer, number)
        for row in range(len(pairs))
      ]
    )
    for layer in range(config.n_layers)
  ]
  W_O = np.asarray(weights.per_query_head(model.params, config, "W_O"))
  onto = [
    tau[layer] @ np.linalg.pinv(W_O[layer, head]) @ W_O[layer, head]
    for layer, head in np.ndindex(W_O.shape[:2])
  ]
  gram = np.array([[np.sum(a * b) for a in onto] for b in onto])
  layers = np.array([[np.sum(a * b) for a in tau] for b in tau])
  return layers, gram.reshape(W_O.shape[:2] * 2)


SMALL = {"n_layers": 2, "n_heads": 2, "n_kv_heads": 2, "d_model": 8,
         "windows": None}  # fmt: skip


@pytest.mark.parametrize(
  ("config", "objective"),
  [(AXIS, "logit_difference"), (AXIS, "next_token"),
   pytest.param(
     PUBLIC["neox"], "logit_difference", marks=pytest.mark.slow)],
  ids=["axis", "axis loss", "neox"],
)  # fmt: skip
def test_products_are_those_of_slopes(config, objective, x64):
  config = dataclasses.replace(config, **SMALL)
  model, _ = random_model(config)
  pairs = random_pairs(config, [4, 3], [2, 1])
  found = gradient_products(model, pairs, objective=objective, budget_bytes=1)
  number = difference if objective == "logit_difference" else loss
  layers, heads = slow_products(model, pairs, number)
  np.testing.assert_allclose(found.layers, layers, rtol=1e-5, atol=1e-7)
  np.testing.assert_allclose(found.heads, heads, rtol=1e-5, atol=1e-7)
  together = gradient_products(model, pairs, objective=objective)
  np.testing.assert_allclose(together.heads, found.heads, rtol=1e-9)


def test_adding_nothing_changes_no_bit():
  model, _ = random_model(FAMILIES["llama_kv2"], dtype="float32")
  tokens = random_pairs(model.config, [6, 6], [1, 1]).clean
  seen = []

  def objective(resid):
    jax.debug.callback(lambda x: seen.append(np.asarray(x)), resid)
    return resid.sum()

  attn_out_gradient(
    model.model, model.params, tokens, np.ones(tokens.shape, bool), objective
  )
  jax.effects_barrier()
  plain, _ = run(model.model, model.params, tokens)
  np.testing.assert_array_equal(seen[0], plain)


def test_shares_of_an_orthogonal_decomposition_add_up(x64):
  model, _ = random_model(AXIS)
  pairs = random_pairs(AXIS, [6, 5], [2, 1])
  found = gradient_products(model, pairs)
  own = np.einsum("lhlh->lh", found.heads)
  np.testing.assert_allclose(own.sum(1), np.diagonal(found.layers), rtol=1e-9)


def test_the_gradient_is_that_of_the_slow_model(x64):
  model, raw = random_model(dataclasses.replace(GPT2, n_layers=1, windows=None))
  pairs = random_pairs(model.config, [5], [2])
  gradient = attn_out_gradient(
    model.model, model.params, pairs.clean, np.ones((1, 5), bool),
    lambda resid: unembed(model.model, model.params, resid)[0, -1, 7],
  )  # fmt: skip
  moved, step = dict(raw), 1e-6
  direction = np.random.default_rng(0).normal(size=16)
  logit = []
  for sign in (1, -1):  # the bias moves every position at once
    moved["b_O"] = raw["b_O"] + sign * step * direction
    logit.append(forward(model.config, moved, pairs.clean[0])[1][-1, 7])
  slope = (logit[0] - logit[1]) / (2 * step)
  found = float((gradient[0, 0] @ direction).sum())
  np.testing.assert_allclose(found, slope, rtol=1e-6)


def test_what_has_no_such_gradient_is_refused():
  model, _ = random_model(PUBLIC["olmo2"], dtype="float32")
  with refusal("model", "a norm of the attention output"):
    gradient_products(model, random_pairs(model.config, [6], [1]))
  model, _ = random_model(GPT2, dtype="float32")
  with refusal("objective", "'loss'"):
    gradient_products(model, random_pairs(GPT2, [6], [1]), objective="loss")
