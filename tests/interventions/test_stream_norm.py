"""Which sweeps take a stream that is normed after every half, and are right?"""

import jax
import numpy as np
import pytest
import slow_clamps
import slow_sweep
from helpers import POST, random_model, random_pairs
from one_line import refusal

from headjax.interventions import clamps, leakage, nodes
from headjax.interventions.direct import direct_effects
from headjax.interventions.edges import patch_edges
from headjax.interventions.heads import patch_heads
from headjax.interventions.responses import head_responses

LENGTHS, FIRST = [6, 8, 4, 5], [3, 4, 3, -1]


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


@pytest.mark.parametrize(
  "form, site",
  [("suffix", "z"), pytest.param("general", "k", marks=pytest.mark.slow)],
)
def test_sweep_is_a_loop_of_oracle_forwards(x64, form, site):
  model, w = random_model(POST)
  pairs = random_pairs(POST, LENGTHS, FIRST)
  data = patch_heads(model, pairs, form, site=site)
  effect, base = slow_sweep.sweep(
    POST, w, pairs, site=site, ablation="reference"
  )
  assert (np.abs(effect).max(0) > 1e-5).mean() > 0.6
  np.testing.assert_allclose(data.effect, effect, rtol=0, atol=1e-10)
  np.testing.assert_allclose(data.base, base, rtol=0, atol=1e-10)


def test_clamped_sweep_is_a_loop_of_edited_forwards(x64):
  model, _ = random_model(POST)
  pairs = random_pairs(POST, [5, 6], [2, 3])
  hold = clamps.later_mlps(POST)
  data = clamps.clamp_heads(model, pairs, {"mlps": hold})
  [want] = slow_clamps.effects(model, pairs, hold)
  assert np.abs(want).max() > 1e-4, "the test would prove nothing"
  want = np.moveaxis(want, -1, 0).reshape(2, 1, -1)
  np.testing.assert_allclose(data.effect, want, rtol=0, atol=1e-10)


def test_what_needs_a_sum_of_writes_is_refused_in_one_line():
  model, _ = random_model(POST, dtype="float32")
  pairs = random_pairs(POST, [5], [2])
  with refusal("model: got norms of the stream"):
    direct_effects(model, pairs)
  with refusal("model: got norms of the stream"):
    patch_edges(model, pairs)
  with refusal("model: got norms of the stream"):
    nodes.check_splits(POST)
  with refusal("model: got a norm of the stream"):
    leakage.check_additive(POST)
  with refusal("model: got norms of the stream"):
    head_responses(model, pairs)
