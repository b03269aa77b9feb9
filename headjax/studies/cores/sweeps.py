"""How does the time until a model groks depend on weight decay and modulus?

A point of a sweep has several seeds; its delay is their median, in which a run
that never grokked counts as longer than any: such runs are censored, not
dropped, and a point where they are the majority has no median. Intervals draw
the seeds of every point again.

Source: paper D, the inverse scaling law: tau = K / weight decay, and
  tau = -Omega log(1 - p_crit / p), both beside a power law.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from headjax.checks import check
from headjax.studies.cores.grokking import GrokTime

DRAWS = 2000


def point_rows(times: Sequence[GrokTime], field: str) -> list[dict[str, Any]]:
  """One row a point: its median delay, and how many runs never grokked.

  Args:
    times: of all runs.
    field: that the points differ in, "p" or "weight_decay".
  """
  rows = []
  for value, delays in _points(times, field).items():
    median = float(np.median(delays))
    rows.append(
      {
        field: value,
        "runs": len(delays),
        "censored": int(np.isinf(delays).sum()),
        "delay": median if np.isfinite(median) else float("nan"),
      }
    )
  return rows


def power_law(
  times: Sequence[GrokTime], field: str, *, seed: int = 0
) -> dict[str, Any]:
  """The exponent of delay ~ field^exponent, with a 95% interval.

  Args:
    times: of all runs.
    field: "p" or "weight_decay".
    seed: of the resamples.
  """

  def exponent(x, y):
    return np.polyfit(np.log(x), np.log(y), 1)[0]

  found, low, high = _with_interval(times, field, exponent, seed)
  law = {"field": field, "exponent": found, "low": low, "high": high}
  return law | censoring(times, field)


def censoring(times: Sequence[GrokTime], field: str) -> dict[str, int]:
  """What a fit over the points leaves out: `left out`, points without a median.

  Args:
    times: of all runs.
    field: "p" or "weight_decay".

  Returns:
    `points` that enter, those `left out`, all `runs` and the `censored` ones.
  """
  rows = point_rows(times, field)
  used = sum(row["delay"] > 0 for row in rows)
  return {
    "points": used,
    "left out": len(rows) - used,
    "runs": len(times),
    "censored": sum(row["censored"] for row in rows),
  }


def inverse_decay(
  times: Sequence[GrokTime], *, seed: int = 0
) -> dict[str, Any]:
  """K of delay = K / weight decay, by least squares of the logarithms."""

  def constant(x, y):
    return np.exp(np.mean(np.log(y) + np.log(x)))

  found, low, high = _with_interval(times, "weight_decay", constant, seed)
  return {"K": found, "low": low, "high": high}


def critical_modulus(times: Sequence[GrokTime]) -> dict[str, float]:
  """Omega and p_crit of delay = -Omega log(1 - p_crit / p).

  By least squares of the delays; only for p above p_crit. Where p_crit is far
  below every p, only the product is told by the delays, which are then
  Omega p_crit / p.

  Returns:
    `p_crit`, `omega` in epochs, and their `product`.
  """
  x, y = _medians(times, "p")
  _check_points(x)

  def omega(p_crit):
    basis = -np.log1p(-p_crit / x)
    return basis @ y / (basis @ basis), basis

  def error(p_crit):
    scale, basis = omega(p_crit)
    return ((y - scale * basis) ** 2).sum()

  found = minimize_scalar(
    error, bounds=(1e-3, x.min() * (1 - 1e-6)), method="bounded"
  ).x
  scale = float(omega(found)[0])
  return {"p_crit": float(found), "omega": scale, "product": scale * found}


def _points(times, field) -> dict[float, np.ndarray]:
  values = sorted({getattr(one, field) for one in times})
  return {
    value: np.array([t.delay for t in times if getattr(t, field) == value])
    for value in values
  }


def _medians(times, field, pick: Callable = lambda delays: delays):
  """Points with a positive, finite median."""
  x, y = [], []
  for value, delays in _points(times, field).items():
    median = np.median(pick(delays))
    if 0 < median < np.inf:
      x.append(value)
      y.append(median)
  return np.array(x, float), np.array(y)


def _with_interval(times, field, statistic, seed):
  """A statistic of the medians, and its percentile interval over seeds."""
  x, y = _medians(times, field)
  _check_points(x)
  rng, drawn = np.random.default_rng(seed), []
  for _ in range(DRAWS):
    some = _medians(
      times, field, lambda delays: rng.choice(delays, len(delays))
    )
    if len(some[0]) >= 2:
      drawn.append(statistic(*some))
  check(
    bool(drawn),
    "sweep",
    "no draw of the seeds with two points that have a median",
    "seeds that grok at two points or more",
    "train longer, or with more seeds",
  )
  low, high = np.quantile(drawn, (0.025, 0.975))
  return float(statistic(x, y)), float(low), float(high)


def _check_points(x: np.ndarray) -> None:
  check(
    len(x) >= 2,
    "sweep",
    f"{len(x)} points with a median",
    "at least 2",
    "train longer, or at more points",
  )
