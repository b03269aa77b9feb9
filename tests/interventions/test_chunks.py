"""Does a plan fit its budget, and do its chunks cover every example?"""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import GPT2, LLAMA, random_model, random_pairs

from headjax.interventions import chunks, suffix
from headjax.interventions.metrics import LogitDifference
from headjax.interventions.record import alternative_z, record
from headjax.interventions.sweep import _suffix_rows
from headjax.models.config import ModelConfig

SMALL = ModelConfig(12, 12, 768, 64, 3072, 50257, 1024)


def planned(config, budget, n=64, n_pos=16, width=4, devices=1, extra=0):
  return chunks.plan(
    config, n_examples=n, n_pos=n_pos, width=width, itemsize=4,
    budget_bytes=budget, n_devices=devices, row_extra=extra,
  )  # fmt: skip


@pytest.mark.parametrize("config", [GPT2, LLAMA, SMALL])
@pytest.mark.parametrize("devices", [1, 3])
def test_plans_fit_the_budget_and_cover_all_examples(config, devices):
  least = minimum(config)
  for factor, n in itertools.product((1, 1.5, 7, 60, 4000), (1, 5, 64)):
    budget = int(least * factor)
    plan = planned(config, budget, n=max(n, devices), devices=devices)
    assert plan.n_bytes <= budget
    assert 1 <= plan.heads <= config.n_heads
    assert plan.examples >= 1 and plan.examples % devices == 0
    assert plan.examples < max(n, devices) + devices


def minimum(config):
  """The least budget, as the refusal states it."""
  with pytest.raises(ValueError) as error:
    planned(config, 0)
  return int(str(error.value).split("at least ")[1].split()[0])


@pytest.mark.parametrize("config", [GPT2, SMALL])
def test_budget_too_small_is_refused_with_the_least_that_would_do(config):
  least = minimum(config)
  with pytest.raises(ValueError, match="^budget_bytes: got ") as error:
    planned(config, least - 1)
  assert "\n" not in str(error.value)
  assert planned(config, least).examples == 1
  assert planned(config, least).heads == 1


def test_more_budget_never_means_smaller_chunks():
  least = minimum(SMALL)
  plans = [planned(SMALL, least * k) for k in range(1, 200, 7)]
  rows = [p.examples * p.heads for p in plans]
  assert all(p.heads <= q.heads for p, q in itertools.pairwise(plans))
  assert rows[-1] > rows[0]


def test_metric_that_unembeds_the_vocabulary_gets_smaller_chunks():
  budget = 3 * minimum(SMALL)
  plain, whole = planned(SMALL, budget), planned(SMALL, budget, extra=2 * 50257)
  assert whole.examples * whole.heads < plain.examples * plain.heads


@pytest.mark.parametrize("n, size", [(10, 4), (8, 4), (3, 8), (1, 1)])
def test_slices_visit_every_index_once_in_chunks_of_one_size(n, size):
  seen = []
  for index, place in chunks.slices(n, size):
    assert len(index) == size and index.max() < n
    seen.extend(index[: place.stop - place.start])
    np.testing.assert_array_equal(seen, np.arange(place.stop))
  assert len(seen) == n


def test_a_sweep_s_scratch_memory_stays_within_its_plan():
  """What the compiler reserves for one call, at a middling size."""
  config = dataclasses.replace(SMALL, n_layers=2, windows=None, d_vocab=100)
  model, _ = random_model(config, scale=0.02, dtype="float32")
  pairs = random_pairs(config, [40] * 4, [20] * 4)
  runs = [
    record(model.model, model.params, jnp.asarray(tokens))
    for tokens in (pairs.clean, pairs.reference)
  ]
  window = suffix.make_window(
    config, pairs.first_difference, pairs.answer_pos, 40
  )
  shared = suffix.prepare(
    model.model,
    model.params,
    runs[0],
    alternative_z(model.model, model.params, "z", *runs),
    window,
  )
  metric = LogitDifference(jnp.asarray(pairs.answer), jnp.asarray(pairs.foil))
  memory = (
    _suffix_rows.jitted.lower(
      model.model,
      model.params,
      shared,
      metric,
      jnp.zeros(4),
      np.array([0]),
      np.arange(12),
    )
    .compile()
    .memory_analysis()
  )
  held = sum(leaf.nbytes for leaf in jax.tree.leaves(shared))
  plan = planned(config, 2 * chunks.GIB, n=4, n_pos=40, width=window.width)
  assert (plan.examples, plan.heads) == (4, 12)
  assert memory.temp_size_in_bytes + held <= plan.n_bytes
