"""One step against the plain gradient of the plain forward."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from helpers import FAMILIES, GPT2, SCREENING
from slow_params import slow_but

from headjax.models.decoder import Decoder, run, unembed
from headjax.training import optimizer
from headjax.training.recipe import Arithmetic, Optimizer
from headjax.training.sharding import MeshShape, make_mesh
from headjax.training.step import Trainer

RECIPE = Optimizer(steps=10, peak=1e-2, warmup=2)
CAUSAL = {name: c for name, c in FAMILIES.items() if c.causal} | {
  "screening": SCREENING
}


def batch(config, n=4, seed=0):
  rng = np.random.default_rng(seed)
  return rng.integers(0, config.d_vocab, (n, config.n_ctx + 1)).astype(np.int32)


def trainer(config, recipe=RECIPE, **arithmetic):
  arithmetic = Arithmetic(4, **arithmetic)
  return Trainer(
    config, recipe, arithmetic, make_mesh(MeshShape(1), jax.devices()[:1])
  )


def plain_loss(model, params, tokens):
  resid, _ = run(model, params, tokens[:, :-1])
  log_p = jax.nn.log_softmax(unembed(model, params, resid))
  return -jnp.take_along_axis(log_p, tokens[:, 1:, None], -1).mean()


def step_once(config, tokens, **arithmetic):
  one = trainer(config, dtype="float64", **arithmetic)
  state = one.init(3)
  state = jax.tree.map(
    lambda x: x.astype(float) if x.dtype == jnp.float32 else x, state
  )
  params = jax.tree.map(jnp.copy, state.params)
  return params, *one.step(state, tokens)


@pytest.mark.parametrize("name", slow_but(["gpt2"], CAUSAL))
def test_a_step_is_the_update_of_the_plain_gradient(name, x64):
  config, tokens = CAUSAL[name], batch(CAUSAL[name])
  params, state, metrics = step_once(config, tokens, loss_rows=10)
  loss, gradient = jax.value_and_grad(plain_loss, 1)(
    Decoder(config), params, tokens
  )
  update = optimizer.make(RECIPE)
  change, _ = update.update(gradient, update.init(params), params)
  want = optax.apply_updates(params, change)
  np.testing.assert_allclose(metrics["loss"], loss, rtol=1e-10)
  np.testing.assert_allclose(
    metrics["grad_norm"], optax.tree.norm(gradient), rtol=1e-8
  )
  assert int(state.step) == 1
  jax.tree.map(
    # Where a gradient is 0 but for rounding, such as a key bias', Adam's first
    # update is a matter of the epsilon.
    lambda x, y, g: np.testing.assert_allclose(
      np.where(abs(g) > 1e-9, x, y), y, atol=1e-8
    ),
    state.params, want, gradient,
  )  # fmt: skip


@pytest.mark.parametrize(
  "arithmetic",
  slow_but(
    [{"accumulate": 2}],
    [
      {"accumulate": 2},
      {"accumulate": 4},
      {"remat": "block"},
      {"unroll": 2},
      {"unroll": 99},
      {"loss_rows": 1},
    ],
  ),
  ids=str,
)
def test_the_arithmetic_changes_no_number(arithmetic, x64):
  tokens = batch(GPT2)
  _, state, metrics = step_once(GPT2, tokens)
  _, other, others = step_once(GPT2, tokens, **arithmetic)
  np.testing.assert_allclose(others["loss"], metrics["loss"], rtol=1e-12)
  np.testing.assert_allclose(
    others["grad_norm"], metrics["grad_norm"], rtol=1e-10
  )
  moved = optax.tree.norm(
    jax.tree.map(jnp.subtract, other.params, state.params)
  )
  assert moved < 1e-5 * optax.tree.norm(state.params)


def test_evaluation_is_the_loss_of_the_step():
  one, tokens = trainer(GPT2), batch(GPT2)
  state = one.init(0)
  loss = one.evaluate(state.params, tokens)
  np.testing.assert_allclose(
    loss, one.step(state, tokens)[1]["loss"], rtol=1e-6
  )


@pytest.mark.slow
def test_half_precision_keeps_float32_parameters_and_nearly_the_loss():
  tokens = batch(GPT2)
  full, half = trainer(GPT2), trainer(GPT2, dtype="bfloat16")
  state, metrics = full.step(full.init(0), tokens)
  other, others = half.step(half.init(0), tokens)
  for leaf in jax.tree.leaves((other.params, other.opt_state)):
    assert leaf.dtype in (jnp.float32, jnp.int32)
  np.testing.assert_allclose(others["loss"], metrics["loss"], rtol=2e-3)
  assert others["loss"] != metrics["loss"]


def test_a_model_learns_its_batch_by_heart():
  config = dataclasses.replace(GPT2, n_ctx=8)
  one = trainer(config, Optimizer(steps=200, peak=1e-2, final=1e-3, warmup=5))
  state, tokens = one.init(0), one.place(batch(config))
  for _ in range(200):
    state, metrics = one.step(state, tokens)
  assert metrics["loss"] < 0.5 < np.log(config.d_vocab) / 4


@pytest.mark.slow
def test_the_seed_decides_the_parameters():
  one = trainer(GPT2)
  first, again, other = (one.init(seed).params for seed in (1, 1, 2))
  jax.tree.map(np.testing.assert_array_equal, first, again)
  assert (first["embed"]["W_E"] != other["embed"]["W_E"]).mean() > 0.9


def test_rows_do_not_see_the_tokens_that_they_predict():
  """The loss of a position does not depend on later tokens."""
  one, tokens = trainer(GPT2), batch(GPT2)
  params = one.init(0).params
  changed = tokens.copy()
  changed[:, -1] = (changed[:, -1] + 1) % GPT2.d_vocab
  losses = [float(one.evaluate(params, t)) for t in (tokens, changed)]
  resid, _ = run(Decoder(GPT2), params, tokens[:, :-1])
  log_p = jax.nn.log_softmax(unembed(Decoder(GPT2), params, resid[:, -1]))
  at = np.arange(4)
  want = (log_p[at, tokens[:, -1]] - log_p[at, changed[:, -1]]).sum()
  got = (losses[1] - losses[0]) * tokens[:, 1:].size
  np.testing.assert_allclose(got, want, atol=1e-3)
