"""Do fits find planted laws, and are censored runs kept?"""

import numpy as np
import pytest

from headjax.studies.cores import sweeps
from headjax.studies.cores.grokking import GrokTime


def run(p=53, decay=1.0, seed=0, delay=100.0, start=10.0):
  return GrokTime(p, decay, seed, start, start + delay, 9999)


def by_decay(constant=200.0, spread=0.1):
  rng = np.random.default_rng(0)
  return [
    run(decay=wd, seed=s, delay=constant / wd * np.exp(spread * rng.normal()))
    for wd in (0.5, 1.0, 2.0, 3.0)
    for s in range(5)
  ]


def test_an_inverse_law_has_exponent_minus_one():
  exact = sweeps.power_law(by_decay(spread=0), "weight_decay")
  assert np.isclose(exact["exponent"], -1)
  assert np.isclose(sweeps.inverse_decay(by_decay(spread=0))["K"], 200)
  noisy = sweeps.power_law(by_decay(), "weight_decay")
  assert noisy["low"] < -1 < noisy["high"] < noisy["low"] + 0.3


def test_the_critical_modulus_is_found():
  times = [
    run(p=p, delay=-1000 * np.log(1 - 20 / p)) for p in (31, 43, 53, 61, 79)
  ]
  found = sweeps.critical_modulus(times)
  assert np.isclose(found["p_crit"], 20, rtol=1e-3)
  assert np.isclose(found["omega"], 1000, rtol=1e-2)


def test_far_above_the_critical_modulus_its_product_is_known():
  times = [run(p=p, delay=60_000 / p) for p in (31, 43, 53, 61)]
  found = sweeps.critical_modulus(times)
  assert found["p_crit"] < 1  # that is, anything that is small
  assert np.isclose(found["product"], 60_000, rtol=1e-2)


def test_censored_runs_are_longer_than_any():
  times = [run(seed=0, delay=100), run(seed=1, delay=300), run(seed=2)]
  times[2] = times[2]._replace(test_epoch=float("nan"))
  [row] = sweeps.point_rows(times, "p")
  assert row == {"p": 53, "runs": 3, "censored": 1, "delay": 300}
  times[1] = times[1]._replace(test_epoch=float("nan"))
  [row] = sweeps.point_rows(times, "p")
  assert row["censored"] == 2 and np.isnan(row["delay"])


def test_a_fit_says_what_it_leaves_out():
  times = by_decay(spread=0)
  times[:3] = [one._replace(test_epoch=float("nan")) for one in times[:3]]
  found = sweeps.power_law(times, "weight_decay")
  told = {k: found[k] for k in ("points", "left out", "runs", "censored")}
  assert told == {"points": 3, "left out": 1, "runs": 20, "censored": 3}


def test_one_point_is_no_law():
  with pytest.raises(ValueError, match="sweep: got 1 points"):
    sweeps.power_law([run()], "p")
