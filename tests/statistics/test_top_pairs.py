"""Are pairs of important heads chosen, ordered and ranked as they should be?"""

import numpy as np
import pytest
from one_line import refusal

from headjax.statistics.top_pairs import (
  Head,
  HeadPair,
  agreement,
  ordered_pairs,
  percentile,
  top_heads,
)


def effects_of(table):
  """Three examples around a mean."""
  table = np.asarray(table, float)
  return np.stack([table - 1, table, table + 1])


def test_the_largest_signed_means_are_chosen():
  effects = effects_of([[0.1, -9.0, 3.0], [2.0, 0.0, 0.2]])
  assert top_heads(effects) == (Head(0, 2), Head(1, 0), Head(1, 2))
  assert top_heads(effects, 1) == (Head(0, 2),)


def test_pairs_go_from_earlier_layers_to_later_ones_only():
  heads = [Head(2, 0), Head(0, 1), Head(2, 3), Head(1, 1)]
  expected = {
    HeadPair(0, 1, 1, 1),
    HeadPair(0, 1, 2, 0),
    HeadPair(0, 1, 2, 3),
    HeadPair(1, 1, 2, 0),
    HeadPair(1, 1, 2, 3),
  }
  found = ordered_pairs(heads)
  assert len(found) == 5
  assert set(found) == expected
  assert ordered_pairs([Head(1, 0), Head(1, 2)]) == ()


def test_agreement_counts_heads_and_not_ranks():
  first = [Head(0, 1), Head(1, 1), Head(2, 2)]
  assert agreement(first, [Head(2, 2), Head(0, 1), Head(0, 0)]) == 2
  assert agreement(first, [Head(1, 0)]) == 0


@pytest.mark.parametrize("seed", range(3))
def test_percentiles_are_counts(seed):
  population = np.random.default_rng(seed).integers(0, 6, 40).astype(float)
  population[3] = np.nan
  kept = population[~np.isnan(population)]
  for value in kept:
    below = np.sum(kept < value) + 0.5 * np.sum(kept == value)
    assert percentile(population, value) == pytest.approx(100 * below / 39)
  assert np.isnan(percentile(population, np.nan))


def test_a_population_of_nothing_is_refused():
  with refusal("population", "no values"):
    percentile([np.nan], 1.0)
