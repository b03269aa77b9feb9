"""What does the heat map of an array show? Means, intervals and a colour scale.

The intervals are those of `headjax.statistics.head_intervals`, so that the call
beside the map gives the same numbers.
"""

import itertools
from typing import Any

import numpy as np
import xarray as xr

from headjax.reports.colours import LINEAR_WIDTH, asinh_colour, colour_ticks
from headjax.reports.html import heads, packing
from headjax.reports.html.source import Source
from headjax.statistics import head_intervals

IN_NATS = ("logits (nats)", "nats")


def head_map(source: Source, name: str, array: xr.DataArray) -> dict[str, Any]:
  """One array of a result as an entry of the page.

  Args:
    source: the file it comes from.
    name: of the array.
    array: from `heads.placed`, neither of pairs nor of patterns.

  Returns:
    What `templates/heatmap.js` draws. The values of single examples are not
    in it: see `example_values`.
  """
  mean, low, high = estimates(array)
  drawn = [heads.labels(array, axis) for axis in heads.HEAD]
  return source.labels(name) | {
    "title": str(array.attrs.get("long_name") or name),
    "units": unit(array),
    "layers": drawn[0],
    "heads": drawn[1],
    "switches": switch_list(array),
    "examples_n": array.sizes.get(heads.EXAMPLE, 0),
    "averaged": ", ".join(
      f"{array.sizes[d]} of {d!r}" for d in heads.averaged(array)
    ),
    "mean": packing.exact(mean),
    "low": None if low is None else packing.exact(low),
    "high": None if high is None else packing.exact(high),
    "colour": colour(mean, _scaled(array)),
    "code": source.code(name, array) | _without_interval(array),
  }


def _scaled(array: xr.DataArray) -> str | None:
  """The unit its colours go by; means of edges are too small for nats."""
  return None if "grouped" in array.attrs else array.attrs.get("units")


def _without_interval(array: xr.DataArray) -> dict[str, None]:
  """No call gives intervals of some heads where others lack values."""
  lacks = not array.attrs.get("listed") and not np.isfinite(array).all()
  return {"interval": None} if lacks else {}


def estimates(array: xr.DataArray):
  """Means over examples and their intervals.

  Args:
    array: with `layer` and `head`, perhaps `example`, and other dimensions.

  Returns:
    Mean, low and high, each `[*switches, layer, head]`; low and high are None
    without examples, and NaN where a value of a head is missing or there is
    one example.
  """
  values = example_table(array)
  if heads.EXAMPLE not in array.dims:
    return values, None, None
  shape = (*values.shape[:-3], *values.shape[-2:])
  mean, low, high = (np.full(shape, np.nan) for _ in range(3))
  for at in itertools.product(*map(range, values.shape[:-3])):
    mean[at], low[at], high[at] = _interval(values[at])
  return mean, low, high


def example_table(array: xr.DataArray) -> np.ndarray:
  """`[*switches, example, layer, head]`, or without examples if it has none."""
  kept = array.astype(np.float64).mean(heads.averaged(array))
  has = [heads.EXAMPLE] if heads.EXAMPLE in array.dims else []
  return kept.transpose(*heads.switches(array), *has, *heads.HEAD).values


def _interval(values: np.ndarray):
  """Mean, low and high of `[example, layer, head]` that may lack some heads."""
  known = np.isfinite(values)
  count = known.sum(0)
  total = np.where(known, values, 0).sum(0)
  mean = np.where(count, total / np.maximum(count, 1), np.nan)
  low, high = np.full_like(mean, np.nan), np.full_like(mean, np.nan)
  whole = known.all(0)
  if len(values) > 1 and whole.any():
    found = head_intervals(values[:, whole][:, None])
    low[whole], high[whole] = found.low[0], found.high[0]
  return mean, low, high


def colour(values: np.ndarray, units: str | None) -> dict[str, Any]:
  """The colour scale: that of the figures for nats, else a linear one."""
  finite = values[np.isfinite(values)]
  limit = float(np.abs(finite).max(initial=0))
  signed = bool((finite < 0).any())
  if units not in IN_NATS:
    return {"limit": limit or 1.0, "signed": signed, "width": None}
  limit = max(limit, LINEAR_WIDTH)
  ticks = colour_ticks(limit)
  return {
    "limit": limit,
    "signed": True,
    "width": LINEAR_WIDTH,
    "ticks": ticks.tolist(),
    "places": asinh_colour(ticks).tolist(),
  }


def unit(array: xr.DataArray) -> str:
  """The unit as a reader wants it: nothing for a pure number."""
  units = str(array.attrs.get("units", ""))
  return "" if units == "1" else units


def switch_list(array: xr.DataArray) -> list[dict[str, Any]]:
  """The switches of an array and what they choose from."""
  return [
    {"name": name, "values": heads.labels(array, name)}
    for name in heads.switches(array)
  ]
