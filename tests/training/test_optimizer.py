import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import GPT2, SCREENING
from one_line import refusal

from headjax.models import weights
from headjax.models.decoder import Decoder
from headjax.training import optimizer
from headjax.training.recipe import Arithmetic, Optimizer

RECIPE = Optimizer(
  steps=10, peak=1e-2, final=1e-3, warmup=3, weight_decay=0.3, beta_1=0.8,
  beta_2=0.9, epsilon=1e-6, clip=0.5,
)  # fmt: skip


def slow_rate(recipe: Optimizer, step: int) -> float:
  """The learning rate of update `step`, counted from 0, by its definition."""
  if step < recipe.warmup:
    start = recipe.peak / (recipe.warmup + 1)
    return start + (recipe.peak - start) * step / recipe.warmup
  share = (step - recipe.warmup) / (recipe.steps - 1 - recipe.warmup)
  wave = 0.5 * (1 + math.cos(math.pi * min(1, share)))
  return recipe.final + (recipe.peak - recipe.final) * wave


@pytest.mark.parametrize("warmup", [0, 3])
def test_the_rate_rises_in_a_line_and_falls_in_half_a_cosine(warmup):
  recipe = dataclasses.replace(RECIPE, warmup=warmup)
  rate = optimizer.schedule(recipe)
  got = [float(rate(step)) for step in range(13)]
  want = [slow_rate(recipe, min(step, 9)) for step in range(13)]
  np.testing.assert_allclose(got, want, rtol=1e-5)
  assert max(got) == pytest.approx(recipe.peak)
  assert got[9] == pytest.approx(recipe.final)
  assert 0 < got[0] <= recipe.peak


def slow_adamw(recipe: Optimizer, params, gradients, decaying):
  """AdamW on a dict of float64 arrays, as Loshchilov and Hutter write it."""
  mean = {k: np.zeros_like(v) for k, v in params.items()}
  square = {k: np.zeros_like(v) for k, v in params.items()}
  for step, gradient in enumerate(gradients):
    norm = math.sqrt(sum((g**2).sum() for g in gradient.values()))
    shrink = min(1, recipe.clip / norm) if recipe.clip else 1
    rate = slow_rate(recipe, step)
    for name, g in gradient.items():
      g = g * shrink
      mean[name] = recipe.beta_1 * mean[name] + (1 - recipe.beta_1) * g
      square[name] = recipe.beta_2 * square[name] + (1 - recipe.beta_2) * g**2
      m = mean[name] / (1 - recipe.beta_1 ** (step + 1))
      v = square[name] / (1 - recipe.beta_2 ** (step + 1))
      update = m / (np.sqrt(v) + recipe.epsilon)
      if name in decaying:
        update = update + recipe.weight_decay * params[name]
      params[name] = params[name] - rate * update
  return params


@pytest.mark.parametrize("clip", [0, 0.5])
@pytest.mark.parametrize("decaying", optimizer.DECAYING)
def test_updates_are_those_of_adamw_written_out(clip, decaying, x64):
  recipe = dataclasses.replace(RECIPE, clip=clip)
  rng = np.random.default_rng(0)
  shapes = {"W_in": (3, 4), "b_in": (2, 3), "gain": (4,)}
  params = {k: rng.normal(size=s) for k, s in shapes.items()}
  gradients = [
    {k: rng.normal(size=s) for k, s in shapes.items()} for _ in range(6)
  ]
  update = optimizer.make(recipe, decaying=decaying)
  got = {k: jnp.asarray(v) for k, v in params.items()}
  state = update.init(got)
  for gradient in gradients:
    change, state = update.update(gradient, state, got)
    got = jax.tree.map(jnp.add, got, change)
  matrices = {"W_in"}
  decay = matrices if decaying == "matrices" else set(shapes)
  want = slow_adamw(recipe, params, gradients, decay)
  for name in shapes:
    np.testing.assert_allclose(got[name], want[name], rtol=1e-6)


@pytest.mark.parametrize("config", [GPT2, SCREENING], ids=["gpt2", "screening"])
def test_matrices_and_embeddings_decay_and_nothing_else(config):
  params = jax.eval_shape(
    Decoder(config).init, jax.random.key(0), jnp.zeros((1, 1), int)
  )["params"]
  decays = optimizer.decays(params)
  for name in weights.shapes(config):
    node = decays
    for part in weights.PATHS[name]:
      node = node[part]
    assert node == (name[:2] == "W_"), name


def test_an_unknown_choice_of_parameters_is_refused():
  with refusal("decaying: got 'gains'", "all, matrices"):
    optimizer.make(RECIPE, decaying="gains")


def test_bad_recipes_are_refused_by_field():
  with refusal("optimizer.warmup: got 1000", "at most train.steps - 2 = 598"):
    Optimizer(steps=600)
  with refusal("optimizer.warmup: got 2", "at most train.steps - 2 = 1"):
    Optimizer(steps=3, warmup=2)
  with refusal("optimizer.peak: got 0", "more than 0"):
    dataclasses.replace(RECIPE, peak=0)
  with refusal("optimizer.beta_2: got 1"):
    dataclasses.replace(RECIPE, beta_2=1)
  with refusal("train.steps: got 0"):
    dataclasses.replace(RECIPE, steps=0)
  with refusal("train.dtype: got 'float16'", "bfloat16, float32"):
    Arithmetic(8, dtype="float16")
  with refusal("train.accumulate: got 3", "a divisor of train.batch_size = 8"):
    Arithmetic(8, accumulate=3)
  with refusal("train.remat: got 'all'", "block, none"):
    Arithmetic(8, remat="all")
