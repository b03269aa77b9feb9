"""Are tokens drawn by their probabilities, and each row by itself?"""

import jax.numpy as jnp
import numpy as np
import pytest

from headjax.models import sampling

LOGITS = np.array([1.0, 3.0, 2.0, -1.0, 2.5], np.float32)
N = 4000  # draws; a frequency is off by at most 0.032 (four deviations)


def shares(temperature, top_k=None, logits=LOGITS):
  """How often each token is drawn, over many rows."""
  many = jnp.broadcast_to(logits, (N, len(logits)))
  drawn = sampling.draw(many, np.uint32(7), 3, np.float32(temperature), top_k)
  return np.bincount(drawn, minlength=len(logits)) / N


def softmax(x):
  e = np.exp(x - x.max())
  return e / e.sum()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_frequencies_are_probabilities(temperature):
  wanted = softmax(LOGITS / temperature)
  np.testing.assert_allclose(shares(temperature), wanted, atol=0.032)


@pytest.mark.parametrize("top_k", [1, 3, 5])
def test_only_the_likeliest_are_drawn(top_k):
  kept = np.argsort(-LOGITS)[:top_k]
  wanted = np.zeros(5)
  wanted[kept] = softmax(LOGITS[kept])
  found = shares(1.0, top_k)
  np.testing.assert_allclose(found, wanted, atol=0.032)
  assert not found[wanted == 0].any()


def test_ties_of_the_last_rank_are_all_drawn():
  found = shares(1.0, 2, np.array([0.0, 2.0, 1.0, 1.0], np.float32))
  assert found[0] == 0 and (found[1:] > 0.1).all()


def test_a_low_temperature_is_greedy():
  assert shares(1e-4)[1] == 1
  assert sampling.greedy(jnp.asarray([LOGITS, -LOGITS])).tolist() == [1, 3]


def test_the_first_of_equal_logits_wins():
  assert sampling.greedy(jnp.zeros((1, 4))).tolist() == [0]


def draw(logits, seed=1, step=0):
  drawn = sampling.draw(
    jnp.asarray(logits), np.uint32(seed), step, np.float32(1), None
  )
  return np.asarray(drawn)


def test_a_row_draws_the_same_whatever_the_others_are():
  logits = np.random.default_rng(0).normal(size=(64, 9)).astype(np.float32)
  whole = draw(logits)
  assert len(np.unique(whole)) > 4
  np.testing.assert_array_equal(draw(logits[:11]), whole[:11])
  logits[:32] = 0
  np.testing.assert_array_equal(draw(logits)[32:], whole[32:])


def test_rows_steps_and_seeds_draw_differently():
  same = np.zeros((64, 9), np.float32)
  found = [draw(same), draw(same, step=1), draw(same, seed=2)]
  assert len(np.unique(found[0])) == 9
  for i in range(3):
    assert (found[i] != found[i - 1]).mean() > 0.7


def test_float64_draws_what_float32_draws(x64):
  logits = np.random.default_rng(0).normal(size=(64, 9)).astype(np.float32)
  np.testing.assert_array_equal(draw(logits), draw(logits.astype(float)))
