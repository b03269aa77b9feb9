"""Are planted correspondences found, and absent ones not?"""

import itertools

import numpy as np
import pytest
from one_line import refusal
from scipy.stats import kstest

from headjax.statistics import lane_score, lanes, mean_effect
from headjax.statistics.correspondence import (
  cosines,
  effect_correlations,
  match_heads,
  relabel,
)


def hidden_lanes(rng, n_layers=4, n_heads=5):
  """`[layer, head]`: a random lane for every head."""
  order = np.tile(np.arange(n_heads), (n_layers, 1))
  return rng.permuted(order, axis=1)


def aligned(labels):
  """The same lanes, named by the heads of layer 0."""
  names = np.argsort(labels[0])
  return names[labels]


@pytest.mark.parametrize("seed", range(5))
def test_planted_lanes_are_recovered_from_noisy_vectors(seed):
  rng = np.random.default_rng(seed)
  truth = hidden_lanes(rng)
  directions = rng.normal(size=(5, 12))
  vectors = directions[truth] + 0.3 * rng.normal(size=(4, 5, 12))
  found = match_heads(cosines(vectors))
  np.testing.assert_array_equal(found, aligned(truth))


def test_planted_lanes_are_recovered_from_effects_and_confirmed_on_others():
  rng = np.random.default_rng(3)
  truth = hidden_lanes(rng)
  strength = np.zeros((4, 5))
  strength[truth == 2] = 1.0

  def effects():
    signal = rng.normal(size=(80, 5))[:, truth]
    return strength + signal + 0.5 * rng.normal(size=(80, 4, 5))

  discovery, evaluation = effects(), effects()
  labels = match_heads(effect_correlations(discovery))
  np.testing.assert_array_equal(labels, aligned(truth))
  before, after = lanes(evaluation), lanes(relabel(evaluation, labels))
  assert after.value > 0.7 > before.value + 0.2
  assert after.p < 0.01
  pure = relabel(np.broadcast_to(strength, (2, 4, 5)), labels)
  assert lane_score(mean_effect(pure)) == 1


@pytest.mark.parametrize("seed", range(4))
def test_three_layers_are_matched_as_by_trying_everything(seed):
  rng = np.random.default_rng(seed)
  half = rng.normal(size=(9, 9))
  table = (half + half.T).reshape(3, 3, 3, 3)

  def agreement(labels):
    heads = np.argsort(labels, axis=1)
    return sum(
      table[l, heads[l, k], m, heads[m, k]]
      for k in range(3)
      for l, m in itertools.combinations(range(3), 2)  # noqa: E741
    )

  orders = [np.array(p) for p in itertools.permutations(range(3))]
  everything = max(
    agreement(np.stack([np.arange(3), a, b]))
    for a, b in itertools.product(orders, repeat=2)
  )
  assert agreement(match_heads(table)) == pytest.approx(everything)


def test_relabelling_moves_heads_to_their_lanes():
  labels = np.array([[0, 1, 2], [2, 0, 1]])
  table = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
  expected = np.zeros_like(table)
  for layer, head in np.ndindex(table.shape):
    expected[layer, labels[layer, head]] = table[layer, head]
  np.testing.assert_array_equal(relabel(table, labels), expected)
  stacked = relabel(np.stack([table, 2 * table]), labels)
  np.testing.assert_array_equal(stacked[1], 2 * expected)


def test_correlations_are_those_within_conditions():
  rng = np.random.default_rng(0)
  effects = rng.normal(size=(40, 2, 3))
  condition = np.repeat([0, 1], 20)
  effects[:, 0, 1] = 2 * effects[:, 1, 0] + 5 * condition
  found = effect_correlations(effects, condition)
  assert found[0, 1, 1, 0] == pytest.approx(1)
  plain = effect_correlations(effects)
  flat = effects.reshape(40, -1)
  np.testing.assert_allclose(plain.reshape(6, 6), np.corrcoef(flat.T))
  effects[:, 1, 2] = 7.0
  assert (effect_correlations(effects)[1, 2] == 0).all()


@pytest.mark.parametrize("basis", ["writes", "effects"])
def test_p_is_uniform_where_there_is_no_correspondence(basis):
  """Some heads matter, the same on both splits, but none belong together."""
  rng = np.random.default_rng(11)
  p = []
  for _ in range(200):
    strength = rng.exponential(size=(4, 6))
    discovery, evaluation = (
      strength * (1 + rng.normal(size=(30, 4, 6))) for _ in range(2)
    )
    if basis == "writes":
      similarity = cosines(rng.normal(size=(4, 6, 8)))
    else:
      similarity = effect_correlations(discovery)
    moved = relabel(evaluation, match_heads(similarity))
    p.append(lanes(moved, draws=199, seed=int(rng.integers(2**31))).p)
  assert kstest(p, "uniform").pvalue > 0.01


def test_other_tables_are_refused():
  with refusal("similarity", "shape (2, 3, 2, 2)"):
    match_heads(np.zeros((2, 3, 2, 2)))
  with refusal("similarity", "not finite"):
    match_heads(np.full((2, 3, 2, 3), np.nan))
