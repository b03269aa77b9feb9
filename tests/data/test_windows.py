import itertools

import numpy as np
import pytest
from one_line import refusal
from scipy import stats

from headjax.data.windows import GAMMA as _GAMMA
from headjax.data.windows import check_enough, in_order, starts, uniform

MASK = 2**64 - 1
GAMMA = int(_GAMMA)


def slow_mix(value):
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
  return value ^ (value >> 31)


def slow_uniform(below, seed, index):
  """The rule in Python's own integers, with the textbook rejection."""
  key = slow_mix(slow_mix(seed & MASK))
  value = slow_mix(slow_mix((key + index * 0x9E3779B97F4A7C15) & MASK))
  while value >= 2**64 // below * below:
    value = slow_mix((value + 0x9E3779B97F4A7C15) & MASK)
  return value % below


@pytest.mark.parametrize("below", [1, 2, 3, 1000, 2**32, 2**62 + 1, 2**63])
@pytest.mark.parametrize("seed", [0, 42, -1, 2**64 + 5])
def test_draws_follow_the_rule(below, seed):
  indices = np.array([0, 1, 2, 31, 2**21, 2**40])
  expected = [slow_uniform(below, seed, int(i)) for i in indices]
  assert uniform(below, seed, indices).tolist() == expected


def test_many_draws_are_rejected_and_stay_uniform():
  """A range of 3/4 of 2^63 doubled would fill its lower part twice as often."""
  below = 3 * 2**61
  drawn = uniform(below, 1, np.arange(40_000)) / below
  assert stats.kstest(drawn, "uniform").pvalue > 1e-3


def test_starts_are_uniform_over_all_windows():
  n_tokens, length = 40, 9
  first = starts("replacement", 5, np.arange(64_000), n_tokens, length)
  counts = np.bincount(first)
  assert len(counts) == n_tokens - length + 1
  assert stats.chisquare(counts).pvalue > 1e-3


def test_neighbouring_indices_and_seeds_are_independent():
  seeds = [0, 1, 2, 1729, -1]
  draws = np.stack([uniform(2**40, s, np.arange(20_000)) for s in seeds])
  for a, b in itertools.combinations(draws, 2):
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03
    assert abs(np.corrcoef(a[1:], b[:-1])[0, 1]) < 0.03
    assert abs(np.corrcoef(a[:-1], b[1:])[0, 1]) < 0.03
  for a in draws:
    assert abs(np.corrcoef(a[1:], a[:-1])[0, 1]) < 0.03


def test_a_draw_depends_on_its_own_index_only():
  together = starts("replacement", 3, np.arange(50), 1000, 17)
  alone = [starts("replacement", 3, [i], 1000, 17)[0] for i in range(50)]
  assert together.tolist() == alone


def test_once_reads_every_target_once():
  length, n = 5, 60
  first = starts("once", 99, np.arange(n), n * (length - 1) + 3, length)
  targets = (first[:, None] + np.arange(1, length)).ravel()
  assert sorted(targets) == list(range(1, n * (length - 1) + 1))


def test_once_is_in_an_order_that_only_the_seed_draws():
  orders = [starts("once", s, np.arange(60), 241, 5) for s in (1, 1, 2)]
  assert orders[0].tolist() == orders[1].tolist() != orders[2].tolist()
  keys = [slow_mix(slow_mix(slow_mix(slow_mix(1)) + i * GAMMA & MASK))
          for i in range(60)]  # fmt: skip
  expected = sorted(range(60), key=keys.__getitem__)
  assert orders[0].tolist() == [4 * i for i in expected]
  assert starts("once", 1, [7], 241, 5)[0] == orders[0][7]


def test_in_order_one_sequence_follows_the_other():
  assert in_order(np.arange(4), 17, 5).tolist() == [0, 4, 8, 12]
  with refusal("5 sequences", "at most 4"):
    in_order([4], 17, 5)


def test_the_corpus_of_a_whole_run_is_exactly_long_enough():
  check_enough("once", 1_073_741_825, 513, 65_536 * 32)
  with refusal("2,097,153 sequences", "at most 2,097,152", "read once"):
    check_enough("once", 1_073_741_825, 513, 65_536 * 32 + 1)
  with refusal("at most 2,097,151"):
    check_enough("once", 1_073_741_824, 513, 65_536 * 32)


@pytest.mark.parametrize(
  ("arguments", "parts"),
  [
    (("twice", 0, [0], 100, 10), ["sampling", "twice", "once, replacement"]),
    (("replacement", 0, [0], 9, 10), ["9 tokens", "at least 10"]),
    (("once", 0, [0], 9, 10), ["9 tokens", "at least 10"]),
    (("once", 0, [0, 11], 100, 10), ["12 sequences", "at most 11"]),
    (("replacement", 0, [3, -1], 100, 10), ["indices", "-1"]),
    (("replacement", 0, [3], 100, 1), ["length", "at least 2"]),
  ],
)
def test_what_the_corpus_does_not_have_is_refused(arguments, parts):
  with refusal(*parts):
    starts(*arguments)


def test_replacement_never_ends():
  check_enough("replacement", 10, 10, 10**12)
  assert starts("replacement", 0, [10**12], 10, 10).tolist() == [0]
