"""Is the share of the best directions what a loop would make of it?"""

import itertools

import numpy as np
import pytest
from one_line import refusal

from headjax.statistics.shares import top_share


def test_directions_are_ranked_on_one_split_and_summed_on_the_other():
  validation = np.array([[5.0, 0.0, 4.0, -9.0], [3.0, 2.0, 4.5, 0.0]])
  evaluation = np.array([[1.0, 6.0, -1.0, 2.0], [3.0, 2.0, -2.0, 0.0]])
  # Means 2, 4, -1.5, 1; the best two on validation are 2 and 0.
  found = top_share(validation, evaluation, count=2)
  assert found.value == pytest.approx((2 - 1.5) / 7)
  assert top_share(validation, evaluation, count=4).value == pytest.approx(
    (7 - 1.5) / 7
  )


def test_random_sets_are_as_all_sets():
  drops = np.random.default_rng(0).normal(size=(1, 7)) + 0.5
  sums = [
    sum(drops[0, list(chosen)])
    for chosen in itertools.combinations(range(7), 3)
  ]
  shares = np.array(sums) / drops[drops > 0].sum()
  found = top_share(-drops, drops, count=3, draws=20_000)
  assert found.random_largest == pytest.approx(shares.max())
  assert found.random_median == pytest.approx(np.median(shares), abs=0.02)
  exact = np.mean(shares >= found.value - 1e-12)
  assert found.p == pytest.approx(exact, abs=0.01)


def test_a_planted_few_carry_everything():
  rng = np.random.default_rng(1)
  table = rng.normal(0, 1e-3, size=(30, 100))
  table[:, [3, 50, 99]] += 1
  found = top_share(table[:15], table[15:], count=3)
  assert found.value > 0.98
  assert found.p == 1 / 1001
  assert found.random_median < 0.05


def test_p_is_uniform_when_nothing_lasts():
  p = []
  for seed in range(300):
    first, second = np.random.default_rng(seed).normal(size=(2, 4, 30))
    p.append(top_share(first, second, count=5, draws=99, seed=seed).p)
  assert abs(np.mean(p) - 0.5) < 0.06
  assert abs(np.mean(np.array(p) <= 0.1) - 0.1) < 0.06


def test_nothing_positive_is_no_number():
  found = top_share(np.ones((1, 4)), -np.ones((1, 4)), count=2)
  assert np.isnan([found.value, found.p, found.random_median]).all()


def test_tables_of_different_directions_are_refused():
  with refusal("evaluation", "(3,)"):
    top_share(np.ones((2, 4)), np.ones((2, 3)))
  with refusal("count", "10"):
    top_share(np.ones((2, 4)), np.ones((2, 4)))
