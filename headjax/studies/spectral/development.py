"""How early is the final circuit found, and does it outlive other data?"""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from headjax.data.probes import PLAIN
from headjax.studies.spectral import screen
from headjax.studies.spectral.trajectory import last, ordered

ENOUGH = 2 / 3  # of the final circuit
_LEAST = 2.0  # times the baseline, of the lenient threshold

Head = tuple[int, int]


def recall(
  series: xr.Dataset, kind: str, final: Sequence[Head] | None = None
) -> list[dict]:
  """How much of the final circuit each checkpoint shows already.

  Args:
    series: of checkpoints.
    kind: of keys.
    final: the circuit, (layer, head); default that of the last checkpoint.

  Returns:
    A row a step: its share of all steps, how many heads its own circuit has,
    and the recall and precision of that; and the recall by the lenient
    threshold, the null's floor but at least 2. NaN where there is no circuit.

  Source: paper B, early detection and the two thresholds.
  """
  series = ordered(series)
  wanted = set(screen.circuit(last(series), kind) if final is None else final)
  found = []
  for step in series.step.values.tolist():
    one = series.sel(step=step)
    mine = set(screen.circuit(one, kind))
    floor = max(_LEAST, screen.null_floor(one))
    lenient = set(screen.members(one, kind, threshold=floor))
    found.append(
      {
        "step": step,
        "share": step / int(series.step.max()),
        "heads": len(mine),
        "recall": _share(mine & wanted, wanted),
        "precision": _share(mine & wanted, mine),
        "floor": floor,
        "lenient_heads": len(lenient),
        "lenient_recall": _share(lenient & wanted, wanted),
      }
    )
  return found


def first_detection(
  rows: Sequence[dict], *, column: str = "recall", enough: float = ENOUGH
) -> dict | None:
  """The first row of `recall` with enough of the final circuit, or None."""
  return next((row for row in rows if row[column] >= enough), None)


def jaccard(one: Sequence[Head], other: Sequence[Head]) -> float:
  """Common heads over all heads of two circuits; NaN if both are empty."""
  return _share(set(one) & set(other), set(one) | set(other))


def data_shift(first: xr.Dataset, second: xr.Dataset, kind: str) -> dict:
  """Whether training on other data leaves a circuit as it is.

  Args:
    first: measurement at the end of the first phase, or its series.
    second: of the second phase.
    kind: of keys.

  Returns:
    Both circuits as sets of heads, and their Jaccard index.

  Source: paper B, robustness to a shift of the data.
  """
  before, after = (screen.circuit(last(x), kind) for x in (first, second))
  return {
    "kind": kind,
    "before": before,
    "after": after,
    "jaccard": jaccard(before, after),
  }


def along(series: xr.Dataset, kind: str, heads: Sequence[Head]) -> list[dict]:
  """A row a step and head: its ratio and its selectivity."""
  series = ordered(series)
  values = screen.selectivity(series).sel(kind=kind)
  ratio = series.ratio.sel(measure="entropy")
  return [
    {
      "step": step,
      "layer": layer,
      "head": head,
      "ratio": float(ratio.sel(step=step)[layer, head]),
      "selectivity": float(values.sel(step=step)[layer, head]),
    }
    for step in series.step.values.tolist()
    for layer, head in heads
  ]


def class_shares(series: xr.Dataset) -> list[dict]:
  """A row a step: the share of all heads in every class, and the fraction.

  `conserved` is the share above the null's floor.
  """
  series = ordered(series)
  found = []
  for step in series.step.values.tolist():
    one = series.sel(step=step)
    kind = screen.classes(one).values
    names = (*PLAIN, screen.UNCLASSIFIED)
    above = screen.selectivity(one).sel(kind="induction")
    found.append(
      {"step": step}
      | {name: float(np.mean(kind == name)) for name in names}
      | {"conserved": float((above > screen.null_floor(one)).mean())}
    )
  return found


def class_by_layer(series: xr.Dataset, kind: str) -> list[dict]:
  """A row a step: the share of each layer's heads in a class."""
  series = ordered(series)
  found = []
  for step in series.step.values.tolist():
    shares = (screen.classes(series.sel(step=step)).values == kind).mean(1)
    layers = {f"layer_{i}": float(value) for i, value in enumerate(shares)}
    found.append({"step": step} | layers)
  return found


def _share(part: set, whole: set) -> float:
  return len(part) / len(whole) if whole else float("nan")
