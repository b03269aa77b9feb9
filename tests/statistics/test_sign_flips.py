"""Do random signs give the exact p, also where prompts belong together?"""

import itertools

import numpy as np
import pytest
from one_line import refusal
from scipy import stats

from headjax.statistics import draws
from headjax.statistics.sign_flips import sign_flip_p


def exact_p(values):
  """Two-sided p over every choice of signs."""
  sums = [
    abs(sum(sign * value for sign, value in zip(signs, values, strict=True)))
    for signs in itertools.product([-1, 1], repeat=len(values))
  ]
  return np.mean([s >= abs(sum(values)) - 1e-9 for s in sums])


def test_p_is_that_of_all_signs():
  values = np.random.default_rng(0).normal(0.4, 1, size=(9, 6))
  found = sign_flip_p(values, draws=40_000)
  exact = [exact_p(column) for column in values.T]
  np.testing.assert_allclose(found, exact, atol=5 * 0.5 / 200)


def test_groups_change_sign_as_a_whole():
  values = np.random.default_rng(1).normal(0.5, 1, size=(12, 3))
  group = np.array(list("abcdefabcdef"))
  found = sign_flip_p(values, draws=40_000, group=group)
  sums = [[values[group == g, c].sum() for g in "abcdef"] for c in range(3)]
  exact = [exact_p(column) for column in sums]
  np.testing.assert_allclose(found, exact, atol=5 * 0.5 / 200)
  assert np.abs(found - sign_flip_p(values, draws=40_000)).max() > 0.03


def test_p_is_uniform_under_the_null():
  values = np.random.default_rng(2).standard_t(3, size=(40, 2000))
  p = sign_flip_p(values, draws=2000)
  assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_correlated_prompts_need_groups():
  rng = np.random.default_rng(3)
  shared = np.repeat(rng.normal(size=(16, 1000)), 4, axis=0)
  values = shared + 0.5 * rng.normal(size=(64, 1000))
  group = np.repeat(np.arange(16), 4)
  together = sign_flip_p(values, draws=1000, group=group)
  alone = sign_flip_p(values, draws=1000)
  assert abs((together <= 0.1).mean() - 0.1) < 0.03
  assert (alone <= 0.1).mean() > 0.25


def test_p_counts_the_observed_signs_and_ties():
  # Of eight choices of three signs, two give a sum of size 0.3.
  assert sign_flip_p([[0.1], [0.1], [0.1]], draws=9999) == pytest.approx(
    0.25, abs=0.02
  )
  np.testing.assert_array_equal(sign_flip_p(np.zeros((3, 2)), draws=9), 1.0)


def test_the_chunk_does_not_matter(monkeypatch):
  values = np.random.default_rng(4).normal(size=(5, 2, 3))
  whole = sign_flip_p(values, draws=500, seed=3)
  assert whole.shape == (2, 3)
  monkeypatch.setattr(draws, "_CHUNK_BYTES", 700)
  np.testing.assert_array_equal(sign_flip_p(values, draws=500, seed=3), whole)


def test_wrong_tables_are_refused():
  with refusal("values: got values that are not finite"):
    sign_flip_p([1.0, np.nan])
  with refusal("group: got shape (3,); expected one label"):
    sign_flip_p([1.0, 2.0], group=[1, 2, 3])
  with refusal("values: got 1 group"):
    sign_flip_p([1.0, 2.0], group=[1, 1])
  with refusal("draws: got 0"):
    sign_flip_p([1.0, 2.0], draws=0)
