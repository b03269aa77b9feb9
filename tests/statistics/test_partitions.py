"""Are all splits listed once, and is the p of a split exact?"""

import itertools
import math

import numpy as np
import pytest
from one_line import refusal
from scipy import stats

from headjax.statistics.partitions import partitions


def test_all_splits_are_listed_once_with_the_observed_one_first():
  observed = np.array([0, 1, 0, 1, 0, 0], bool)
  found = partitions(observed)
  np.testing.assert_array_equal(found.first[0], observed)
  rows = {tuple(np.flatnonzero(row)) for row in found.first}
  assert rows == set(itertools.combinations(range(6), 2))
  assert len(found.first) == math.comb(6, 2) and found.exhaustive


def test_beyond_the_limit_splits_are_drawn():
  observed = np.arange(20) < 8
  found = partitions(observed, limit=500)
  assert found.first.shape == (501, 20) and not found.exhaustive
  np.testing.assert_array_equal(found.first[0], observed)
  np.testing.assert_array_equal(found.first.sum(axis=1), 8)
  share = found.first[1:].mean(axis=0)
  assert np.abs(share - 0.4).max() < 5 * math.sqrt(0.24 / 500)
  assert partitions(observed, limit=math.comb(20, 8)).exhaustive


def test_p_counts_both_signs_and_the_observed_split():
  found = partitions([True, False, False, False])
  assert found.p_value([3.0, -3.0, 1.0, -4.0]) == 3 / 4
  assert found.p_value([5.0, -3.0, 1.0, -4.0]) == 1 / 4
  tie = 0.1 + 0.2
  assert found.p_value([tie, 0.3, 0.0, 0.0]) == 2 / 4


def test_drawn_splits_count_one_more_above_and_below():
  found = partitions(np.arange(20) < 8, limit=99)
  statistic = np.zeros(100)
  statistic[0] = 1.0
  assert found.p_value(statistic) == 1 / 100


@pytest.mark.parametrize("limit", [10_000, 50])
def test_p_is_uniform_where_labels_mean_nothing(limit):
  rng = np.random.default_rng(0)
  p = []
  for seed in range(400):
    effects = rng.normal(size=10)
    first = np.zeros(10, bool)
    first[rng.permutation(10)[:4]] = True
    splits = partitions(first, limit=limit, seed=seed)
    means = splits.first @ effects / 4 - ~splits.first @ effects / 6
    p.append(splits.p_value(means))
  assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_one_group_is_refused():
  with refusal("first: got 3 of 3 members"):
    partitions([True] * 3)
  with refusal("first: got 0 of 2 members"):
    partitions([False] * 2)
  with refusal("statistic: got shape (2,)"):
    partitions([True, False, False]).p_value([1.0, 2.0])
