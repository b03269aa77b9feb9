"""Do intervals cover, and are two models resampled together?"""

import numpy as np
import pytest
from scipy import stats

from headjax.statistics import (
  bootstrap,
  head_intervals,
  lane_score,
  neff,
  paired_difference,
)


def noise(examples, layers, heads, seed=0):
  return np.random.default_rng(seed).normal(size=(examples, layers, heads))


def ends(interval):
  return [interval.estimate, interval.low, interval.high]


def test_bootstrap_agrees_with_a_loop_over_drawn_examples():
  effects = noise(7, 3, 4)
  counts = np.random.default_rng(5).multinomial(7, np.full(7, 1 / 7), size=60)
  values = []
  for row in counts:
    drawn = [effects[x] for x in range(7) for _ in range(row[x])]
    assert len(drawn) == 7
    values.append(float(neff(sum(drawn) / 7)))
  result = bootstrap(neff, effects, draws=60, seed=5, level=0.8)
  assert result.estimate == float(neff(effects.mean(axis=0)))
  assert result.low == pytest.approx(np.quantile(values, 0.1), rel=1e-10)
  assert result.high == pytest.approx(np.quantile(values, 0.9), rel=1e-10)


def test_a_statistic_of_examples_sees_the_same_resamples():
  effects = noise(6, 3, 4)
  fast = bootstrap(neff, effects, draws=50)
  slow = bootstrap(
    lambda table: neff(table.mean(axis=0)), effects, draws=50, of="effects"
  )
  np.testing.assert_allclose(ends(slow), ends(fast), rtol=1e-10)


def test_intervals_of_the_mean_cover_it_as_often_as_they_say():
  covered = 0
  for seed in range(10):
    result = head_intervals(
      noise(100, 10, 10, seed) + 2.0, draws=500, seed=seed, level=0.9
    )
    covered += np.count_nonzero((result.low < 2.0) & (2.0 < result.high))
  # The percentile interval is a little short with 100 examples: 0.895.
  assert stats.binomtest(covered, 1000, 0.895).pvalue > 0.01


def test_intervals_have_the_width_of_the_standard_error():
  result = bootstrap(lambda e: e[..., 0, 0], noise(400, 1, 1), draws=4000)
  width = result.high - result.low
  assert width == pytest.approx(2 * 1.96 / np.sqrt(400), rel=0.12)


def test_head_intervals_are_tables_around_the_means():
  effects = noise(30, 3, 4)
  result = head_intervals(effects, draws=200)
  assert result.low.shape == result.high.shape == (3, 4)
  assert np.all(result.low < result.estimate)
  assert np.all(result.estimate < result.high)
  alone = bootstrap(lambda e: e[..., 1, 2], effects, draws=200)
  assert result.low[1, 2] == pytest.approx(alone.low, rel=1e-10)
  assert result.high[1, 2] == pytest.approx(alone.high, rel=1e-10)


def test_the_difference_of_a_model_with_itself_is_exactly_zero():
  effects = noise(9, 3, 4)
  for of in ("mean", "effects"):
    result = paired_difference(neff, effects, effects.copy(), draws=40, of=of)
    assert np.all(np.array(ends(result)) == 0.0)


def test_pairing_cancels_what_the_examples_share():
  shared = noise(50, 1, 1) * np.ones((1, 1, 3))
  a, b = shared + 1.0, shared[:, :, :2] + 0.25

  def mean(e):
    return e.mean(axis=(-2, -1))

  result = paired_difference(mean, a, b, draws=300)
  np.testing.assert_allclose(ends(result), 0.75, rtol=1e-10)


def test_the_difference_is_first_minus_second():
  a, b = noise(20, 3, 4, 1), noise(20, 2, 5, 2)
  forth = paired_difference(neff, a, b, draws=50)
  back = paired_difference(neff, b, a, draws=50)
  assert forth.estimate == pytest.approx(
    float(neff(a.mean(axis=0)) - neff(b.mean(axis=0))), rel=1e-12
  )
  assert (forth.low, forth.high) == pytest.approx((-back.high, -back.low))


def test_seeds_decide_the_resamples():
  effects = noise(9, 3, 4)
  assert bootstrap(neff, effects) == bootstrap(neff, effects)
  assert bootstrap(neff, effects) != bootstrap(neff, effects, seed=1)


def test_a_statistic_undefined_in_a_resample_has_no_interval():
  effects = np.full((4, 2, 1), -1.0)
  effects[0] = 2.0
  effects[1:, :, :] = -0.5
  result = bootstrap(lane_score, effects, draws=50)
  assert result.estimate == 1.0
  assert np.isnan(result.low) and np.isnan(result.high)


@pytest.mark.parametrize(
  ("changes", "words"),
  [
    ({"level": 1.0}, "level: got 1.0"),
    ({"draws": 0}, "draws: got 0"),
    ({"of": "median"}, "of: got 'median'"),
    ({"effects": np.ones((1, 2, 2))}, "effects: got 1 example"),
    ({"statistic": np.sum}, "statistic: got a result of shape"),
  ],
)
def test_wrong_arguments_are_refused(changes, words):
  arguments = {"statistic": neff, "effects": noise(4, 2, 2), "draws": 5}
  with pytest.raises(ValueError, match=words):
    bootstrap(**(arguments | changes))


def test_models_on_other_numbers_of_examples_are_not_paired():
  with pytest.raises(ValueError, match="effects_b: got 5 examples"):
    paired_difference(neff, noise(4, 2, 2), noise(5, 2, 2))
