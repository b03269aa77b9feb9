"""Is a table of effects read as written, and anything else refused?"""

import numpy as np
import pytest
import xarray as xr

from headjax.statistics import as_effects, concentration, mean_effect


def test_named_axes_in_any_order_give_the_same_table():
  table = np.random.default_rng(0).normal(size=(4, 3, 2))
  named = xr.DataArray(table, dims=("example", "layer", "head"))
  turned = named.transpose("head", "example", "layer")
  np.testing.assert_array_equal(as_effects(named), table)
  np.testing.assert_array_equal(as_effects(turned), table)


def test_float32_effects_are_averaged_in_float64():
  table = np.full((3, 1, 1), 0.1, np.float32)
  table[0] = 1e8
  exact = (1e8 + 2 * float(np.float32(0.1))) / 3
  assert mean_effect(table)[0, 0] == pytest.approx(exact, rel=1e-15)


def test_mean_effect_keeps_leading_axes():
  table = np.random.default_rng(1).normal(size=(5, 4, 3, 2))
  for batch, mean in zip(table, mean_effect(table), strict=True):
    slow = sum(batch[x] for x in range(4)) / 4
    np.testing.assert_allclose(mean, slow, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
  ("bad", "words"),
  [
    (np.zeros((2, 3)), r"shape \(2, 3\)"),
    (np.zeros((0, 2, 2)), r"shape \(0, 2, 2\)"),
    (np.array([[[1.0, np.nan]]]), "1 values that are not finite"),
    ([[[1.0], [2.0, 3.0]]], "list that is no array of numbers"),
    (xr.Dataset({"effect": ("example", [1.0])}), "pass its effects"),
    ({"effect": 1.0}, "pass its effects"),
    (None, "got"),
  ],
)
def test_what_is_no_table_is_refused_in_one_line(bad, words):
  with pytest.raises(ValueError, match=words) as error:
    concentration(bad)
  message = str(error.value)
  assert message.startswith("effects: got") and "\n" not in message
