"""Are the numbers of section 5.2 what loops over the effects give?"""

import numpy as np
import pytest
from one_line import refusal
from saved_effects import saved

from headjax.statistics import neff, paired_difference
from headjax.studies.exclusivity import concentration

RANDOM = np.random.default_rng(0)
EFFECT = RANDOM.normal(0.3, 1.0, (24, 3, 4))
OTHER = RANDOM.normal(0.1, 1.0, (24, 3, 4))
GROUP = np.repeat(["cat", "dog", "owl"], 8)
CONDITION = np.tile([0, 1, 2, 3], 6)
DATA = saved(EFFECT, group=GROUP, condition=CONDITION)


def slow_neff(effect) -> float:
  """From `[example, layer, head]`, by the definition."""
  sizes = [abs(x) for x in effect.mean(0).ravel()]
  shares = [x / sum(sizes) for x in sizes]
  return float(np.exp(-sum(p * np.log(p) for p in shares)))


def test_every_number_of_a_row_is_the_one_of_its_definition():
  row = concentration.summarise(DATA, draws=200)
  e = EFFECT.mean(0)
  size = np.abs(e)
  assert row["E"] == pytest.approx(size.sum(), rel=1e-12)
  assert row["neff"] == pytest.approx(slow_neff(EFFECT), rel=1e-12)
  assert row["n_index"] * row["n_layer"] == pytest.approx(row["neff"])
  assert row["neff_example"] == pytest.approx(slow_neff(np.abs(EFFECT)))
  layer, head = np.argwhere(size == size.max())[0]
  assert row["top_head"] == f"L{layer}H{head}"
  assert row["top_share"] == pytest.approx(size.max() / size.sum())
  assert row["neff_low"] < row["neff"] < row["neff_high"]
  for label in range(4):
    part = slow_neff(EFFECT[CONDITION == label])
    assert row[f"neff_condition_{label}"] == pytest.approx(part)
  changes = [
    abs(slow_neff(EFFECT[GROUP != name]) - row["neff"]) for name in set(GROUP)
  ]
  assert row["left_out_change"] == pytest.approx(max(changes) / row["neff"])


def test_clean_performance_counts_answers_above_foils():
  data = saved(EFFECT[:4], [1.0, -2.0, 3.0, 0.0])
  assert concentration.performance(data) == {
    "examples": 4, "accuracy": 0.5, "margin": 0.5
  }  # fmt: skip


def test_a_difference_is_the_paired_one_of_the_statistics():
  other = saved(OTHER, group=GROUP, condition=CONDITION)
  row = concentration.difference(DATA, other)
  wanted = paired_difference(neff, EFFECT, OTHER)
  assert row["difference"] == pytest.approx(wanted.estimate, rel=1e-12)
  assert (row["low"], row["high"]) == pytest.approx((wanted.low, wanted.high))
  assert row["ratio"] == pytest.approx(slow_neff(EFFECT) / slow_neff(OTHER))
  below = [
    slow_neff(EFFECT[CONDITION == c]) < slow_neff(OTHER[CONDITION == c])
    for c in range(4)
  ]
  assert (row["conditions"], row["conditions_below"]) == (4, sum(below))
  whole = slow_neff(EFFECT) - slow_neff(OTHER)
  without = [
    slow_neff(EFFECT[GROUP != g]) - slow_neff(OTHER[GROUP != g])
    for g in set(GROUP)
  ]
  assert row["groups_reversing"] == sum(x * whole < 0 for x in without)
  mirrored = concentration.difference(other, DATA)
  assert mirrored["low"] == pytest.approx(-row["high"])


def test_a_group_that_reverses_a_difference_is_counted():
  spread, peak = np.ones((1, 2, 2)), np.zeros((1, 2, 2))
  peak[0, 0, 0] = 4.0
  # Without "b", the first model is the more concentrated one.
  a = saved(np.concatenate([peak, 9 * spread]), group=["a", "b"])
  b = saved(np.concatenate([spread, 3 * peak]), group=["a", "b"])
  row = concentration.difference(a, b)
  assert row["difference"] > 0 and row["groups_reversing"] == 1


def test_results_without_labels_have_no_checks_by_label():
  row = concentration.summarise(saved(EFFECT), draws=50)
  assert np.isnan(row["left_out_change"])
  assert not [name for name in row if name.startswith("neff_condition")]


def test_models_that_cannot_be_compared_are_refused():
  with refusal("models", "12 and 6 heads"):
    concentration.difference(DATA, saved(EFFECT[:, :, :2]))
  with refusal("models", "different examples"):
    concentration.difference(DATA, saved(EFFECT, pairs_digest="q"))
