"""Are draws bounded, reproducible and counted correctly?"""

import itertools

import numpy as np
import pytest

from headjax.statistics import (
  bootstrap,
  draws,
  lane_score,
  neff,
  p_value,
  permuted_null,
)


def test_chunks_add_up_and_keep_the_budget():
  sizes = list(draws.chunk_sizes(1000, 2**20))
  assert sum(sizes) == 1000
  assert max(sizes) * 2**20 <= draws._CHUNK_BYTES
  assert list(draws.chunk_sizes(3, 2**60)) == [1, 1, 1]


@pytest.mark.parametrize("chunk_bytes", [1, 5000, 2**30])
def test_results_do_not_depend_on_the_chunk(monkeypatch, chunk_bytes):
  table = np.random.default_rng(0).normal(size=(6, 4, 5))

  def results():
    null = permuted_null(lane_score, table[0], draws=50, seed=3)
    interval = bootstrap(neff, table, draws=50, seed=3)
    return null, [interval.estimate, interval.low, interval.high]

  null, interval = results()
  monkeypatch.setattr(draws, "_CHUNK_BYTES", chunk_bytes)
  chunked_null, chunked_interval = results()
  np.testing.assert_array_equal(chunked_null, null)
  # Matrix products round differently for other numbers of rows.
  np.testing.assert_allclose(chunked_interval, interval, rtol=1e-12)


def test_permutations_keep_every_layer_and_are_independent_between_layers():
  table = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
  seen = []

  def record(tables):
    seen.extend(map(tuple, tables.reshape(len(tables), -1)))
    return tables[:, 0, 0]

  permuted_null(record, table, draws=3600, seed=0)
  every = {
    first + second
    for first in itertools.permutations(table[0])
    for second in itertools.permutations(table[1])
  }
  assert set(seen) == every and len(every) == 36
  counts = [seen.count(arrangement) for arrangement in every]
  # 36 cells of 100 each: 5 standard deviations.
  assert min(counts) > 50 and max(counts) < 150


def test_p_counts_the_observed_table_itself():
  null = np.array([1.0, 2.0, 2.0, 5.0])
  assert p_value(null, 2.0, tail="lower") == 4 / 5
  assert p_value(null, 2.0, tail="upper") == 4 / 5
  assert p_value(null, 9.0, tail="upper") == 1 / 5
  assert p_value(null, 9.0, tail="lower") == 1.0
  assert np.isnan(p_value(null, np.nan, tail="upper"))


def test_values_equal_up_to_rounding_are_ties():
  null = np.array([0.1 + 0.2, 0.3])
  assert null[0] != null[1]
  assert p_value(null, 0.3, tail="lower") == 1.0
  assert p_value(null, 0.1 + 0.2, tail="upper") == 1.0


def test_wrong_tails_and_no_draws_are_refused():
  with pytest.raises(ValueError, match="tail: got 'both'"):
    p_value(np.ones(3), 1.0, tail="both")
  with pytest.raises(ValueError, match="draws: got 0"):
    permuted_null(lane_score, np.eye(2), draws=0, seed=0)
