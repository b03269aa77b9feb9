"""Are chunks what a sweep needs, and within the memory that they plan with?"""

import jax
import numpy as np
import pytest
from held_models import held_model
from helpers import GPT2, TRACR, random_pairs

from headjax.interventions import chunks, clamps, held_rows, sweep
from headjax.interventions.prepared import Prepared, labels
from headjax.interventions.responses import Responses
from headjax.models.config import ModelConfig


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def test_chunks_cover_all_prompts_and_know_their_repeats():
  model, _ = held_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, [6, 8, 3, 8, 5], [3, 5, 2, 7, 2])
  whole = Prepared(model, pairs, "z", 2 * chunks.GIB)
  assert len(whole) == 1
  budget = whole.plan.n_bytes // 2
  parts = Prepared(model, pairs, "z", budget)
  found = list(parts)
  assert len(found) == len(parts) > 1
  assert [i for c in found for i in range(5)[c.place]] == list(range(5))
  [all_of_it] = whole
  for chunk in found:
    assert chunk.real.sum() == chunk.place.stop - chunk.place.start
    np.testing.assert_allclose(
      chunk.base[chunk.real], all_of_it.base[chunk.place], atol=1e-5
    )
  assert chunk.shared.z is None and chunk.shared.mlp_out is None


def memory(chunk, model, program, *arguments):
  """Bytes that the compiler reserves for a call, and those of the chunk."""
  compiled = program.jitted.lower(
    model.model, chunk.params, chunk.shared, chunk.metric, chunk.base,
    *arguments,
  ).compile()  # fmt: skip
  held = sum(leaf.nbytes for leaf in jax.tree.leaves(chunk.shared))
  return compiled.memory_analysis().temp_size_in_bytes + held


@pytest.mark.slow
def test_watching_and_holding_stay_within_their_plans():
  config = ModelConfig(3, 6, 96, 16, 384, 50, 40)
  model, _ = held_model(config, scale=0.02, dtype="float32")
  pairs = random_pairs(config, [40] * 4, [20] * 4)
  heads = np.arange(6)
  watched = Prepared(
    model, pairs, "z", chunks.GIB, watched=3 * (96 + 6 * 3 * 16)
  )
  [chunk] = watched
  observe = Responses(chunk.real)
  found = memory(
    chunk, model, sweep._suffix_rows, np.array([0]), heads, None, observe
  )
  assert (watched.plan.examples, watched.plan.heads) == (4, 6)
  assert found <= watched.plan.n_bytes
  held = Prepared(model, pairs, "z", chunks.GIB, holds=True)
  [chunk] = held
  hold = jax.tree.map(lambda x: x[0], clamps.everything(config))
  assert memory(chunk, model, held_rows._rows, 0, heads, hold) <= (
    held.plan.n_bytes
  )


def test_labels_are_those_of_the_prompts():
  pairs = random_pairs(TRACR, [6, 8], [3, 2])
  assert list(labels(pairs)) == ["example"]
  np.testing.assert_array_equal(labels(pairs)["example"][1], [0, 1])
