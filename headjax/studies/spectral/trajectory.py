"""Which heads compute something, for how long in training? Step 1.

A series is the measurement of every checkpoint of a run, with a dimension
`step`. Steps may be missing; they are put in order, and none may come twice.
Tokens are steps times a constant, so that integrals over their logarithm and
shares of them are those of steps.
"""

import numpy as np
import xarray as xr

from headjax.checks import check
from headjax.statistics import spectra
from headjax.studies.spectral import screen


def ordered(series: xr.Dataset) -> xr.Dataset:
  """The series in the order of its steps.

  Raises:
    ValueError: no steps, or one that comes twice.
  """
  check(
    "step" in series.dims,
    "series",
    f"dimensions {', '.join(map(str, series.dims))}",
    "a dimension step",
    "measure the checkpoints of a run",
  )
  steps, counts = np.unique(series.step.values, return_counts=True)
  check(
    bool((counts == 1).all()),
    "series",
    f"step {steps[counts.argmax()]} {counts.max()} times",
    "every step once",
    "drop one of the two measurements",
  )
  return series.sortby("step")


def integral(
  series: xr.Dataset, *, measure: str = "entropy", logarithmic: bool = True
) -> np.ndarray:
  """`[layer, head]`: the integral of the participation ratio above 1.

  Args:
    series: of at least two checkpoints after step 0.
    measure: "entropy" or "ipr".
    logarithmic: whether over the logarithm of tokens, or over steps.
  """
  series = ordered(series)
  ratio = series.ratio.sel(measure=measure).transpose("step", "layer", "head")
  return spectra.trajectory_integral(
    ratio.values, series.step.values, logarithmic=logarithmic
  )


def signal(found: xr.Dataset) -> np.ndarray:
  """`[layer, head]` by which heads are ranked.

  The integral of a series; of a single checkpoint, the ratio itself.
  """
  if "step" in found.dims and (found.step.values > 0).sum() >= 2:
    return integral(found)
  return last(found).ratio.sel(measure="entropy").values


def last(found: xr.Dataset) -> xr.Dataset:
  """The last checkpoint of a series; another measurement as it is."""
  return ordered(found).isel(step=-1) if "step" in found.dims else found


def rows(series: xr.Dataset) -> list[dict]:
  """A row a head, the largest integral first.

  `kept` says whether it is among the 18% that the source keeps, and `elbow`
  whether it stands before the bend of the sorted integrals.
  """
  value, steps = integral(series), integral(series, logarithmic=False)
  ipr = integral(series, measure="ipr")
  ratio = ordered(series).ratio.sel(measure="entropy")
  spread = spectra.spread(ratio.transpose("step", "layer", "head").values)
  kind = screen.classes(last(series)).values
  n_kept, bend = spectra.n_kept(value.size), spectra.elbow(value)
  return [
    {
      "rank": i + 1,
      "layer": int(layer),
      "head": int(head),
      "integral": float(value[layer, head]),
      "integral_steps": float(steps[layer, head]),
      "integral_ipr": float(ipr[layer, head]),
      "spread": float(spread[layer, head]),
      "kept": i < n_kept,
      "elbow": i < bend,
      "class": str(kind[layer, head]),
    }
    for i, (layer, head) in enumerate(spectra.ranking(value))
  ]
