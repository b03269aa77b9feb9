"""Are conditions and groups selected by their labels?"""

import numpy as np
import pytest
import xarray as xr

from headjax.statistics import by_condition, leave_one_group_out, neff

EFFECTS = np.random.default_rng(0).normal(size=(6, 3, 4))


def test_each_condition_uses_its_own_examples():
  condition = np.array([3, 0, 3, 1, 0, 1], np.int32)
  result = by_condition(neff, EFFECTS, condition)
  assert list(result) == [0, 1, 3]
  for label, rows in {0: [1, 4], 1: [3, 5], 3: [0, 2]}.items():
    expected = float(neff(sum(EFFECTS[row] for row in rows) / 2))
    assert result[label] == pytest.approx(expected, rel=1e-12)


def test_each_group_is_left_out_once():
  group = ["b", "a", "b", "c", "c", "a"]
  result = leave_one_group_out(neff, EFFECTS, group)
  kept = {"a": [0, 2, 3, 4], "b": [1, 3, 4, 5], "c": [0, 1, 2, 5]}
  everything = float(neff(EFFECTS.mean(axis=0)))
  changes = []
  for label, rows in kept.items():
    expected = float(neff(sum(EFFECTS[row] for row in rows) / 4))
    assert result.values[label] == pytest.approx(expected, rel=1e-12)
    changes.append(abs(expected - everything) / everything)
  assert list(result.values) == ["a", "b", "c"]
  assert result.estimate == pytest.approx(everything, rel=1e-12)
  assert result.largest_change == pytest.approx(max(changes), rel=1e-9)


def test_labels_may_be_named_arrays_and_statistics_may_see_examples():
  labels = xr.DataArray([0, 0, 1, 1, 1, 1], dims="example")
  sizes = by_condition(len, EFFECTS, labels, of="effects")
  assert sizes == {0: 2.0, 1: 4.0}
  left = leave_one_group_out(len, EFFECTS, labels, of="effects")
  assert left.values == {0: 4.0, 1: 2.0}
  assert left.largest_change == 4 / 6


def test_tables_within_conditions_stay_tables():
  result = by_condition(lambda e: e, EFFECTS, [0] * 3 + [1] * 3)
  np.testing.assert_allclose(result[1], EFFECTS[3:].mean(axis=0))


def test_change_relative_to_zero_is_not_a_number():
  effects = np.array([1.0, -1.0]).reshape(2, 1, 1)
  result = leave_one_group_out(lambda e: e[..., 0, 0], effects, [0, 1])
  assert result.values == {0: -1.0, 1: 1.0}
  assert np.isnan(result.largest_change)


def test_wrong_labels_and_statistics_are_refused():
  with pytest.raises(ValueError, match=r"condition: got shape \(5,\)"):
    by_condition(neff, EFFECTS, [0] * 5)
  with pytest.raises(ValueError, match=r"group: got shape \(\)"):
    leave_one_group_out(neff, EFFECTS, None)
  with pytest.raises(ValueError, match=r"group: got \[0\]"):
    leave_one_group_out(neff, EFFECTS, [0] * 6)
  with pytest.raises(ValueError, match="statistic: got a result of shape"):
    leave_one_group_out(lambda e: e, EFFECTS, [0, 0, 0, 1, 1, 1])
