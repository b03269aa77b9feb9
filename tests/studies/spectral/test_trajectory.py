"""Is the order of steps mended, and are heads ranked by their integral?"""

import numpy as np
import pytest
import xarray as xr
from one_line import refusal
from spectral_series import series

from headjax.studies.spectral import trajectory


def test_steps_may_be_missing_or_in_disorder():
  whole = trajectory.integral(series())
  np.testing.assert_array_equal(
    trajectory.integral(series([4, 0, 2, 1, 3])), whole
  )
  log = np.log([10, 20, 40, 80])
  assert whole[1, 0] == pytest.approx(np.trapezoid([1, 8, 9, 9], log))
  assert whole[0].tolist() == [0, 0]
  few = trajectory.integral(series([0, 2, 4]))
  assert few[1, 0] == pytest.approx(8.5 * np.log(4))


def test_a_step_that_comes_twice_is_refused():
  with refusal("series: got step 20 2 times; expected every step once"):
    trajectory.integral(series([0, 2, 2, 4]))
  with refusal("series: got dimensions", "expected a dimension step"):
    trajectory.ordered(series().isel(step=0))
  with refusal("at: got 1 points after 0"):
    trajectory.integral(series([0, 2]))


def test_heads_are_ranked_by_their_integral():
  table = trajectory.rows(series([3, 1, 2, 4, 0]))
  assert [(r["layer"], r["head"]) for r in table][:2] == [(1, 0), (1, 1)]
  assert [r["kept"] for r in table] == [True, False, False, False]
  assert table[0]["class"] == "induction" and table[2]["class"] == "first"
  assert table[0]["spread"] == 9 and table[1]["spread"] == 3
  linear = np.trapezoid([1, 8, 9, 9], [10, 20, 40, 80])
  assert table[0]["integral_steps"] == pytest.approx(linear)


def test_a_single_checkpoint_is_ranked_by_its_ratio():
  one = series().isel(step=4)
  np.testing.assert_array_equal(
    trajectory.signal(one), one.ratio.sel(measure="entropy")
  )
  assert trajectory.last(series([4, 1])).step == 80
  whole = series()
  np.testing.assert_array_equal(
    trajectory.signal(whole), trajectory.integral(whole)
  )


def test_series_are_joined_by_step():
  parts = [series().isel(step=[i]) for i in (2, 0)]
  joined = xr.concat(parts, "step")
  assert trajectory.ordered(joined).step.values.tolist() == [0, 20]
