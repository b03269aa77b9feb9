"""The lane score and its null against slow loops and planted lanes."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from headjax.statistics import confirm_heads, lane_score, lanes, permuted_null


def slow_lane_score(table) -> float:
  """Lambda by the definition, one pair of heads at a time."""
  w = [[max(float(x), 0.0) for x in row] for row in table]
  same = everything = 0.0
  for earlier, later in itertools.combinations(w, 2):
    for h, k in itertools.product(range(len(earlier)), range(len(later))):
      product = earlier[h] * later[k]
      everything += product
      same += product if h == k else 0.0
  return same / everything if everything else math.nan


def test_lane_score_agrees_with_slow_loops():
  batch = np.random.default_rng(0).normal(size=(20, 4, 5))
  slow = [slow_lane_score(table) for table in batch]
  np.testing.assert_allclose(lane_score(batch), slow, rtol=1e-12)


def test_a_planted_lane_scores_one():
  table = np.full((12, 12), -0.5)
  table[:, 4] = np.random.default_rng(1).random(12) + 0.1
  assert lane_score(table) == 1.0
  result = lanes(table[None], n_tasks=3)
  assert result.value == 1.0
  assert result.p == 1 / 5001
  assert result.p_corrected == 3 / 5001


def test_two_heads_without_a_common_index_score_zero():
  table = np.zeros((3, 4))
  table[0, 1] = table[2, 3] = 1.0
  assert lane_score(table) == 0.0
  assert lanes(table[None], draws=99).p == 1.0


def test_negative_effects_do_not_count():
  table = np.array([[1.0, -5.0], [0.5, 0.5]])
  assert lane_score(table) == pytest.approx(0.5, rel=1e-14)


def test_tiny_and_huge_effects_keep_their_score():
  table = np.random.default_rng(2).normal(size=(4, 5))
  expected = float(lane_score(table))
  for scale in (1e-200, 1e200):
    assert lane_score(scale * table) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("heads", [4, 12, 16])
def test_chance_is_one_over_the_number_of_heads(heads):
  noise = np.random.default_rng(3).normal(size=(400, 12, heads))
  assert lane_score(noise).mean() == pytest.approx(1 / heads, rel=0.05)
  null = permuted_null(lane_score, noise[0], draws=4000, seed=0)
  result = lanes(noise[:1], draws=9)
  error = 4 * null.std() / math.sqrt(4000)
  assert result.chance == 1 / heads
  assert abs(null.mean() - result.chance) < error


def test_p_agrees_with_every_permutation():
  table = np.array([[3.0, 1.0, -0.2], [2.0, 0.5, 0.4], [0.1, 0.9, 0.3]])
  observed = slow_lane_score(table)
  exact = [
    slow_lane_score(rows)
    for rows in itertools.product(*map(itertools.permutations, table))
  ]
  share = np.mean([value >= observed - 1e-9 for value in exact])
  result = lanes(table[None])
  spread = math.sqrt(share * (1 - share) / 5000)
  assert 0.01 < share < 0.99
  assert abs(result.p - share) < 4 * spread
  assert result.null_median == pytest.approx(np.median(exact), abs=0.005)


def test_p_is_uniform_where_indices_mean_nothing():
  noise = np.random.default_rng(5).normal(size=(1000, 1, 4, 6))
  p = [
    lanes(effects, draws=199, seed=seed).p for seed, effects in enumerate(noise)
  ]
  assert stats.kstest(p, "uniform").pvalue > 0.01


def test_the_correction_never_exceeds_one():
  noise = np.random.default_rng(6).normal(size=(3, 4, 5))
  one = lanes(noise, draws=99)
  three = lanes(noise, draws=99, n_tasks=3)
  assert one.p_corrected == one.p
  assert three.p_corrected == min(1.0, 3 * one.p)
  assert lanes(noise, draws=99, n_tasks=1000).p_corrected == 1.0


def test_the_seed_decides_the_null_alone():
  noise = np.random.default_rng(7).normal(size=(3, 4, 5))
  first, again = lanes(noise, draws=99), lanes(noise, draws=99)
  other = lanes(noise, draws=99, seed=1)
  assert first == again
  assert other.value == first.value
  assert other.null_median != first.null_median


@pytest.mark.parametrize("layers", [0, 1])
def test_the_score_is_undefined_in_under_two_positive_layers(layers):
  table = np.full((3, 4), -1.0)
  table[:layers, :2] = 1.0
  assert np.isnan(lane_score(table))
  result = lanes(table[None], draws=9, n_tasks=3)
  for value in (result.value, result.p, result.p_corrected):
    assert np.isnan(value)
  assert np.isnan(result.null_median)
  assert result.chance == 0.25
  assert "undefined" in repr(result)


def test_heads_are_chosen_on_one_split_and_looked_up_on_the_other():
  discovery, evaluation = np.zeros((2, 2, 3)), np.zeros((4, 2, 3))
  discovery[:, 1, 2], discovery[:, 0, 1], discovery[:, 0, 0] = 3.0, 2.0, -9.0
  evaluation[:, 1, 2], evaluation[:, 0, 1] = 0.5, -0.5
  first, second, third = confirm_heads(discovery, evaluation)
  assert first == (1, 2, 3.0, 0.5, True)
  assert second == (0, 1, 2.0, -0.5, False)
  assert third == (0, 2, 0.0, 0.0, False)


def test_wrong_counts_and_shapes_are_refused():
  effects = np.ones((2, 2, 3))
  with pytest.raises(ValueError, match="n_tasks: got 0"):
    lanes(effects, n_tasks=0)
  with pytest.raises(ValueError, match="count: got 7"):
    confirm_heads(effects, effects, count=7)
  with pytest.raises(ValueError, match="evaluation: got"):
    confirm_heads(effects, effects[:, :1])
