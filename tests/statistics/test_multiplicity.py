"""Are adjusted p-values those of the definitions, and of SciPy?"""

import numpy as np
import pytest
from one_line import refusal
from scipy import stats

from headjax.statistics.multiplicity import benjamini_hochberg, holm, rejected


def slow_bh_set(p, q):
  """The set by the definition: all p up to the last one below its line."""
  order = sorted(range(len(p)), key=lambda i: p[i])
  last = 0
  for rank, i in enumerate(order, 1):
    if p[i] <= q * rank / len(p):
      last = rank
  return set(order[:last])


def slow_holm_set(p, level):
  """The set by the definition: stop at the first p above its line."""
  found = set()
  for step, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
    if p[i] > level / (len(p) - step):
      break
    found.add(i)
  return found


@pytest.mark.parametrize("seed", range(5))
def test_sets_are_those_of_the_definitions(seed):
  rng = np.random.default_rng(seed)
  p = np.concatenate([rng.random(40), rng.random(12) ** 6])
  for level in (0.02, 0.1, 0.3):
    chosen = set(np.flatnonzero(rejected(benjamini_hochberg(p), level)))
    assert chosen == slow_bh_set(p, level)
    chosen = set(np.flatnonzero(rejected(holm(p), level)))
    assert chosen == slow_holm_set(p, level)
  np.testing.assert_allclose(
    benjamini_hochberg(p), stats.false_discovery_control(p), rtol=1e-12
  )


def test_a_p_above_its_line_is_rejected_with_a_later_one_below():
  p = [0.04, 0.045, 0.05]
  np.testing.assert_array_equal(rejected(benjamini_hochberg(p), 0.05), True)
  np.testing.assert_array_equal(rejected(holm(p), 0.05), False)


def test_the_shape_stays_and_order_does_not_matter():
  p = np.random.default_rng(0).random((4, 5)) ** 3
  for adjust in (benjamini_hochberg, holm):
    np.testing.assert_array_equal(
      adjust(p).ravel()[::-1], adjust(p.ravel()[::-1])
    )


def test_nan_is_no_test():
  p = np.array([0.01, np.nan, 0.04])
  for adjust in (benjamini_hochberg, holm):
    found = adjust(p)
    np.testing.assert_array_equal(found[[0, 2]], adjust(p[[0, 2]]))
    assert np.isnan(found[1])
    assert adjust(np.full(3, np.nan)).shape == (3,)
    assert not rejected(found, 1.0)[1]
    assert adjust([]).size == 0


def test_rounding_does_not_decide_on_the_line():
  for n in range(2, 60):
    p = 0.1 * np.arange(1, n + 1) / n
    assert rejected(benjamini_hochberg(p), 0.1).all()
    assert not rejected(benjamini_hochberg(p + 1e-9), 0.1).any()


def test_one_test_is_not_adjusted_and_no_p_exceeds_one():
  for adjust in (benjamini_hochberg, holm):
    assert adjust([0.3]) == [0.3]
    assert adjust([0.9, 0.8, 1.0]).max() <= 1.0


def test_what_is_no_p_is_refused():
  for adjust in (benjamini_hochberg, holm):
    with refusal("p: got 1.5; expected 0 to 1"):
      adjust([0.1, 1.5])
    with refusal("p: got -0.1"):
      adjust(-0.1)
  with refusal("level: got 10; expected 0 to 1"):
    rejected([0.1], 10)
