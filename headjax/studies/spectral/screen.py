"""What is each head for? Step 2: its attention, beside that to other keys.

Selectivity is the mean attention to the keys of a kind over a baseline: the
mean attention to random other keys, or what a head gives each key that spreads
its attention evenly. All numbers are functions of a saved measurement.
"""

import dataclasses

import numpy as np
import xarray as xr

from headjax.checks import check_choice
from headjax.data.probes import PLAIN
from headjax.statistics import spectra

BASELINES = ("empirical", "uniform")
CLASS, MEMBER, PREVIOUS = 30.0, 50.0, 100.0  # times the baseline
SHARES = (0.1, 0.208, 0.3, 1.0)  # of heads that the first estimator keeps
UNCLASSIFIED = "unclassified"
_FLOOR = 1e-8  # of the baseline, in shares of attention
_TOP = 5

Head = tuple[int, int]


def selectivity(found: xr.Dataset, baseline: str = "empirical") -> xr.DataArray:
  """`[kind, layer, head]`: how many times the baseline a head attends.

  Args:
    found: from `measure`, one checkpoint or a series.
    baseline: "empirical", as in the released code, or "uniform", as in the
      paper.
  """
  return found.attention / _baseline(found, baseline)


def null_floor(
  found: xr.Dataset, baseline: str = "empirical", quantile: float = 0.99
) -> float:
  """The selectivity for random keys that few draws of any head exceed."""
  null = found.null / _baseline(found, baseline)
  return float(np.quantile(null, quantile))


def classes(
  found: xr.Dataset, baseline: str = "empirical", threshold: float = CLASS
) -> xr.DataArray:
  """`[layer, head]`: the kind that a head is most selective for, as text.

  A head below the threshold for all plain kinds is "unclassified".
  """
  values = selectivity(found, baseline).sel(kind=list(PLAIN)).fillna(0)
  best = values.kind[values.argmax("kind")]
  return best.where(values.max("kind") >= threshold, UNCLASSIFIED).drop_vars(
    "kind"
  )


def members(
  found: xr.Dataset,
  kind: str,
  *,
  threshold: float = MEMBER,
  best_class: bool = False,
  baseline: str = "empirical",
) -> list[Head]:
  """The heads of a circuit, (layer, head) in order.

  Args:
    found: from `measure`.
    kind: of keys.
    threshold: times the baseline.
    best_class: whether the kind must also be the head's class. Where heads
      that attend to the first token dominate it should not be.
    baseline: as in `selectivity`.
  """
  check_choice("kind", kind, found.kind.values.tolist())
  chosen = selectivity(found, baseline).sel(kind=kind).values >= threshold
  if best_class:
    chosen &= classes(found, baseline).values == kind
  return [(int(layer), int(head)) for layer, head in np.argwhere(chosen)]


def circuit(found: xr.Dataset, kind: str) -> list[Head]:
  """The members by the paper's rule for a kind.

  Previous-token heads are those of that class from 100 times on, all others
  those from 50 times on, whatever their class. Where no name mover and no head
  of S-inhibition is, the five most selective heads stand for them.
  """
  if kind == "previous":
    return members(found, kind, threshold=PREVIOUS, best_class=True)
  heads = members(found, kind)
  if not heads and kind not in PLAIN:
    return sorted(top(found, kind))
  return heads


def top(found: xr.Dataset, kind: str, count: int = _TOP) -> list[Head]:
  """The most selective heads of a kind, the first one first."""
  values = selectivity(found).sel(kind=kind).fillna(0).values
  return [(int(a), int(b)) for a, b in spectra.ranking(values)[:count]]


@dataclasses.dataclass(frozen=True)
class Conserved:
  """The fraction of specialised heads, by two estimators.

  Attributes:
    by_share: kept share of heads -> heads among the first by the spectrum
      whose class is known, over all heads.
    above_null: heads whose selectivity for induction exceeds the null's floor,
      over all heads.
    floor: that selectivity.
  """

  by_share: dict[float, float]
  above_null: float
  floor: float


def conserved(
  found: xr.Dataset, signal, baseline: str = "empirical"
) -> Conserved:
  """How many heads do something that the screens know.

  Args:
    found: from `measure`, of the last checkpoint.
    signal: `[layer, head]` that ranks the heads: the integral of the
      participation ratio, or the ratio itself where there is no series.
    baseline: as in `selectivity`.

  Source: paper B, the conserved fraction.
  """
  known = classes(found, baseline).values != UNCLASSIFIED
  order = spectra.ranking(np.asarray(signal))
  ranked = known[tuple(order.T)]
  by_share = {
    share: float(ranked[: spectra.n_kept(known.size, share)].sum() / known.size)
    for share in SHARES
  }
  floor = null_floor(found, baseline)
  above = selectivity(found, baseline).sel(kind="induction") > floor
  return Conserved(by_share, float(above.mean()), floor)


def rows(found: xr.Dataset, baseline: str = "empirical") -> list[dict]:
  """A row a head: its ratios, its class, and its selectivities."""
  values, kind = selectivity(found, baseline), classes(found, baseline)
  return [
    {
      "layer": layer,
      "head": head,
      "ratio_entropy": float(found.ratio.sel(measure="entropy")[layer, head]),
      "ratio_ipr": float(found.ratio.sel(measure="ipr")[layer, head]),
      "class": str(kind[layer, head].item()),
    }
    | {
      str(k): float(values.sel(kind=k)[layer, head]) for k in found.kind.values
    }
    for layer in range(found.sizes["layer"])
    for head in range(found.sizes["head"])
  ]


def class_shares(found: xr.Dataset) -> list[dict]:
  """A row a layer: the share of its heads in every class."""
  kind = classes(found).values
  names = (*PLAIN, UNCLASSIFIED)
  return [
    {"layer": layer} | {name: float((row == name).mean()) for name in names}
    for layer, row in enumerate(kind)
  ]


def _baseline(found: xr.Dataset, baseline: str):
  check_choice("baseline", baseline, BASELINES)
  if baseline == "uniform":
    return 1 / found.attrs["n_eligible"]
  return np.maximum(found.baseline, _FLOOR)
