"""Are all pairs run once, in batches of one shape?"""

import jax
import numpy as np
import pytest
from helpers import LLAMA, random_model, random_pairs

from headjax.interventions import chunks
from headjax.interventions.batches import Batches

LENGTHS, FIRST = [6, 8, 7, 8, 5], [2, 3, 4, 1, 2]


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


@pytest.fixture(scope="module")
def model():
  return random_model(LLAMA, dtype="float32")[0]


@pytest.fixture(scope="module")
def pairs():
  return random_pairs(LLAMA, LENGTHS, FIRST)


def small_budget(model, pairs, **options):
  return Batches(model, pairs, chunks.GIB, **options).plan.n_bytes // 2


@pytest.mark.parametrize("many_sites", [False, True])
def test_every_pair_comes_once_and_repeats_are_known(model, pairs, many_sites):
  budget = small_budget(model, pairs, many_sites=many_sites)
  batches = Batches(model, pairs, budget, many_sites=many_sites)
  parts = list(batches)
  assert len(parts) == len(batches) > 1
  assert {part.batch.clean.shape for part in parts} == {
    parts[0].batch.clean.shape
  }
  clean = np.zeros_like(pairs.clean)
  for part in parts:
    assert part.window is None and part.n == part.real.sum()
    clean[part.place] = np.asarray(part.batch.clean)[np.asarray(part.real)]
  np.testing.assert_array_equal(clean, pairs.clean)


def test_windows_run_from_the_first_change_to_the_answer(model, pairs):
  whole = Batches(model, pairs, chunks.GIB)
  cut = Batches(model, pairs, chunks.GIB, start=pairs.first_difference)
  assert whole.width == pairs.clean.shape[1] > cut.width
  parts = list(cut)
  answers = np.concatenate([p.batch.answer_pos[: p.n] for p in parts])
  np.testing.assert_array_equal(answers, pairs.answer_pos)
  assert all(part.window is not None for part in parts)


def test_what_is_needed_besides_makes_batches_smaller(model, pairs):
  budget = small_budget(model, pairs)
  seen = []

  def extra(width):
    seen.append(width)
    return 0, 10_000

  smaller = Batches(model, pairs, budget, extra=extra)
  assert seen == [pairs.clean.shape[1]]
  assert smaller.plan.examples < Batches(model, pairs, budget).plan.examples


def test_a_budget_that_fits_nothing_is_refused(model, pairs):
  with pytest.raises(ValueError, match="budget_bytes: got 100"):
    Batches(model, pairs, 100)
