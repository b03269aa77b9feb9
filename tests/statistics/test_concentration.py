"""Neff, its factors and its null against slow loops and closed forms."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from headjax.statistics import concentration, factorise, neff


def slow_neff(table) -> float:
  """Neff by the definition, one head at a time."""
  sizes = [abs(float(x)) for row in table for x in row]
  shares = [size / sum(sizes) for size in sizes if size]
  return math.exp(-sum(p * math.log(p) for p in shares))


def slow_factors(table) -> tuple[float, float]:
  """Both factors by conditional entropies, one index at a time."""
  total = sum(abs(float(x)) for row in table for x in row)
  index_entropy = layer_entropy = 0.0
  for column in zip(*table, strict=True):
    q = sum(abs(float(x)) for x in column) / total
    if q == 0:
      continue
    given = [abs(float(x)) / total / q for x in column if x]
    index_entropy -= q * math.log(q)
    layer_entropy -= q * sum(g * math.log(g) for g in given)
  return math.exp(index_entropy), math.exp(layer_entropy)


def tables(n, layers, heads, seed=0):
  """Random tables of both signs, a third of the entries exactly zero."""
  generator = np.random.default_rng(seed)
  values = generator.standard_t(2, size=(n, layers, heads))
  return values * (generator.random(values.shape) > 1 / 3)


def test_neff_and_factors_agree_with_slow_loops():
  batch = tables(20, 4, 5)
  fast = factorise(batch)
  for i, table in enumerate(batch):
    n_index, n_layer = slow_factors(table)
    assert neff(batch)[i] == pytest.approx(slow_neff(table), rel=1e-12)
    assert fast.n_index[i] == pytest.approx(n_index, rel=1e-12)
    assert fast.n_layer[i] == pytest.approx(n_layer, rel=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (12, 12), (30, 9), (21, 16)])
def test_neff_is_exactly_the_product_of_its_factors(shape):
  batch = tables(50, *shape, seed=1) + 1e-3
  n_index, n_layer = factorise(batch)
  np.testing.assert_allclose(n_index * n_layer, neff(batch), rtol=1e-12)


def test_neff_of_a_uniform_table_counts_heads():
  signs = np.where(np.indices((7, 5)).sum(axis=0) % 2, 0.3, -0.3)
  assert neff(signs) == pytest.approx(35, rel=1e-13)
  n_index, n_layer = factorise(signs)
  assert n_index == pytest.approx(5, rel=1e-13)
  assert n_layer == pytest.approx(7, rel=1e-13)


def test_neff_of_one_head_is_one():
  one = np.zeros((4, 6))
  one[2, 3] = -0.7
  assert neff(one) == 1.0
  assert factorise(one) == (1.0, 1.0)


def test_a_lane_is_one_index_and_a_layer_is_one_layer():
  lane, layer = np.zeros((4, 6)), np.zeros((4, 6))
  lane[:, 2] = 1.0
  layer[1] = 1.0
  np.testing.assert_allclose(factorise(lane), (1, 4), rtol=1e-13)
  np.testing.assert_allclose(factorise(layer), (6, 1), rtol=1e-13)


def test_scale_and_sign_do_not_matter():
  table = tables(1, 4, 5)[0]
  assert neff(-1e-6 * table) == pytest.approx(float(neff(table)), rel=1e-12)


def test_the_sign_is_averaged_before_the_absolute_value_is_taken():
  effects = np.zeros((2, 1, 2))
  effects[:, 0, 0] = [1.0, -1.0]
  effects[:, 0, 1] = [1.0, 1.0]
  result = concentration(effects, draws=9)
  assert result.total == 1.0
  assert result.neff == 1.0
  assert result.neff_example == pytest.approx(2.0, rel=1e-13)


def test_summary_agrees_with_its_primitives():
  effects = tables(6, 4, 5, seed=2)
  e = effects.mean(axis=0)
  result = concentration(effects, draws=99, seed=4)
  assert result.total == pytest.approx(np.abs(e).sum(), rel=1e-14)
  assert result.neff == result.n_index * result.n_layer
  assert result.neff == pytest.approx(slow_neff(e), rel=1e-12)
  assert result.neff_example == pytest.approx(
    slow_neff(np.abs(effects).mean(axis=0)), rel=1e-12
  )
  assert result == concentration(effects, draws=99, seed=4)
  assert result != concentration(effects, draws=99, seed=5)
  assert f"Neff={result.neff:.1f}" in repr(result)
  assert f"{result.n_index:.1f} indices" in repr(result)


def test_p_of_the_indices_agrees_with_every_permutation():
  table = np.array([[3.0, 1.0, 0.2], [2.0, 0.5, 0.4], [0.1, 0.9, 0.3]])
  observed = slow_factors(table)[0]
  exact = [
    slow_factors(rows)[0]
    for rows in itertools.product(*map(itertools.permutations, table))
  ]
  share = np.mean([value <= observed + 1e-9 for value in exact])
  result = concentration(table[None], draws=5000)
  spread = math.sqrt(share * (1 - share) / 5000)
  assert 0.01 < share < 0.99
  assert abs(result.p_index - share) < 4 * spread
  assert result.n_index_null_median == pytest.approx(np.median(exact), abs=0.01)


def test_a_planted_lane_has_the_smallest_possible_p():
  effects = np.zeros((1, 12, 12))
  effects[:, :, 3] = 1.0
  assert concentration(effects, draws=999).p_index == 1 / 1000


def test_p_is_uniform_where_indices_mean_nothing():
  noise = np.random.default_rng(8).normal(size=(1000, 1, 4, 6))
  p = [
    concentration(effects, draws=199, seed=seed).p_index
    for seed, effects in enumerate(noise)
  ]
  assert stats.kstest(p, "uniform").pvalue > 0.01


def test_all_zero_effects_are_nan_below_and_refused_above():
  zeros = np.zeros((2, 3, 4))
  zeros[1, 0, 0] = 1.0
  np.testing.assert_array_equal(neff(zeros), [np.nan, 1.0])
  np.testing.assert_array_equal(factorise(zeros).n_index, [np.nan, 1.0])
  np.testing.assert_array_equal(factorise(zeros).n_layer, [np.nan, 1.0])
  with pytest.raises(ValueError, match="effects: got a mean of zero"):
    concentration(zeros[:1])
