"""Is every member what it would be, trained by itself?"""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from headjax.models.config import ModelConfig
from headjax.models.decoder import run, unembed
from headjax.training.ensembles import Ensemble
from headjax.training.recipe import Arithmetic, Optimizer
from headjax.training.sharding import MeshShape, make_mesh
from headjax.training.step import Trainer

CONFIG = ModelConfig(
  1, 2, 8, 4, 16, 5, 6, norm_at="output", mlp="relu", tied=False
)  # fmt: skip
RECIPE = Optimizer(steps=100, peak=1e-2, final=1e-2, warmup=0, clip=0.0)
SLOW = pytest.mark.slow
SEEDS = np.array([3, 7])
DATA = np.random.default_rng(0).integers(0, 5, (20, 7))
ROWS = np.random.default_rng(1).integers(0, 20, (2, 5, 8))


def alone(i, weight_decay=0.1, config=CONFIG):
  """The same by `Trainer`, step by step on one device."""
  recipe = dataclasses.replace(RECIPE, weight_decay=weight_decay)
  mesh = make_mesh(MeshShape(), jax.devices()[:1])
  trainer = Trainer(config, recipe, Arithmetic(8), mesh)
  state, losses = trainer.init(int(SEEDS[i])), []
  for rows in ROWS[i]:
    state, metrics = trainer.step(state, trainer.place(DATA[rows]))
    losses.append(float(metrics["loss"]))
  return state, losses


DECAY = np.array([0.1, 5.0])


@functools.cache
def ensemble(way):
  """One for all tests: it compiles once."""
  return Ensemble(CONFIG, RECIPE, SEEDS, way=way, weight_decay=DECAY)


def train(way):
  found = ensemble(way)
  return found.advance(found.init(), DATA, ROWS)


@pytest.mark.parametrize("way", ["map", pytest.param("vmap", marks=SLOW)])
def test_members_are_those_of_the_trainer(way):
  state, losses = train(way)
  assert ensemble(way).mesh.size == 2
  for i in range(2):
    expected, expected_losses = alone(i, float(DECAY[i]))
    np.testing.assert_allclose(losses[i], expected_losses, rtol=1e-5)
    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5),
      ensemble(way).params(state, i),
      expected.params,
    )
  assert state.step.tolist() == [5] * 2


def test_members_that_are_not_active_stay_as_they_are():
  whole, losses = train("map")
  found = ensemble("map")
  active = np.array([True, False])
  state, some = found.advance(found.init(), DATA, ROWS, active)
  first = found.params(found.init(), 1)
  jax.tree.map(np.testing.assert_array_equal, found.params(state, 1), first)
  jax.tree.map(
    np.testing.assert_array_equal, found.params(state, 0),
    found.params(whole, 0),
  )  # fmt: skip
  np.testing.assert_array_equal(some[0], losses[0])
  assert not some[1].any() and state.step.tolist() == [5, 0]


@SLOW
def test_both_ways_and_two_calls_give_the_same():
  whole, losses = train("map")
  found = ensemble("vmap")
  state, parts = found.init(), []
  for some in (slice(1), slice(1, 2), slice(2, 3), slice(3, 4), slice(4, 5)):
    state, part = found.advance(state, DATA, ROWS[:, some])
    parts.append(part)
  np.testing.assert_allclose(np.hstack(parts), losses, rtol=1e-5)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5),
    state.params, whole.params,
  )  # fmt: skip


def logits(ensemble, state, i, tokens):
  params = ensemble.params(state, i)
  resid, _ = run(ensemble.model, params, tokens)
  return np.asarray(unembed(ensemble.model, params, resid), np.float64)


def test_losses_and_accuracies_are_of_the_positions_that_count():
  first = 4
  found = Ensemble(CONFIG, RECIPE, SEEDS[1:], first=first)
  state = found.init()
  accuracy = found.accuracy(state, DATA)
  y = logits(found, state, 0, DATA[:, :-1])
  targets = DATA[:, 1:]
  right = y.argmax(-1) == targets
  assert np.isclose(accuracy[0], right[:, first:].mean())
  log_p = y - np.log(np.exp(y).sum(-1, keepdims=True))
  expected = np.take_along_axis(log_p, targets[..., None], -1)[..., 0]
  expected = -expected[ROWS[1, 0]][:, first:].mean()
  _, losses = found.advance(state, DATA, ROWS[1, :1])
  np.testing.assert_allclose(losses[0, 0], expected, rtol=1e-5)


def test_dropout_depends_on_the_step_and_on_nothing_before_it():
  found = Ensemble(CONFIG, RECIPE, SEEDS, dropout_rate=0.5)
  whole, losses = found.advance(found.init(), DATA, ROWS)
  plain = ensemble("map")
  _, without = plain.advance(plain.init(), DATA, ROWS)
  assert (losses != without).all()
  state, some = found.advance(found.init(), DATA, ROWS[:, :3])
  state, others = found.advance(state, DATA, ROWS[:, 3:])
  np.testing.assert_array_equal(np.hstack([some, others]), losses)
  jax.tree.map(
    np.testing.assert_array_equal, state.params, whole.params
  )  # a run that was stopped goes on bit for bit


def test_scores_know_no_dropout():
  found = Ensemble(CONFIG, RECIPE, SEEDS, dropout_rate=0.9)
  plain = ensemble("map")
  np.testing.assert_array_equal(
    found.accuracy(found.init(), DATA), plain.accuracy(plain.init(), DATA)
  )


def test_all_parameters_decay_where_that_is_asked_for():
  recipe = dataclasses.replace(RECIPE, weight_decay=5.0)
  gains = []
  for decaying in ("matrices", "all"):
    found = Ensemble(CONFIG, recipe, SEEDS[:1], decaying=decaying)
    state, _ = found.advance(found.init(), DATA, ROWS[:1])
    gains.append(found.params(state, 0)["blocks"]["mlp_out_norm"]["gain"])
  # Five steps at a rate of 0.01 take a quarter of what decays, and every
  # update moves a gain by 0.01 at most.
  assert (np.asarray(gains[0]) > 0.94).all()
  assert (np.asarray(gains[1]) < 0.84).all()


def test_devices_divide_the_members():
  sizes = [Ensemble(CONFIG, RECIPE, range(n)).mesh.size for n in (1, 3, 8, 11)]
  assert sizes == [1, 3, 8, 1]


def test_bad_input_is_refused():
  with pytest.raises(ValueError, match="seeds: got none"):
    Ensemble(CONFIG, RECIPE, [])
  with pytest.raises(ValueError, match="first: got 6"):
    Ensemble(CONFIG, RECIPE, SEEDS, first=6)
  with pytest.raises(ValueError, match="dropout: got 1"):
    Ensemble(CONFIG, RECIPE, SEEDS, dropout_rate=1)
  with pytest.raises(ValueError, match="decaying: got 'gains'"):
    Ensemble(CONFIG, RECIPE, SEEDS, decaying="gains")
  with pytest.raises(ValueError, match="way: got 'loop'"):
    Ensemble(CONFIG, RECIPE, SEEDS, way="loop")
  with pytest.raises(ValueError, match="rows: got 0 to 20"):
    ensemble("map").advance(None, DATA, np.array([[0, 20]]))
