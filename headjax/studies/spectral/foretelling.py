"""Which tells the final circuit first: the spectrum, or the selectivity?

At every checkpoint, each signal ranks all heads; the area under its curve is
how often a head of the final circuit stands above one of the others. The
heads' ratios are largest at random weights, so that when they are large says
nothing; which heads have the larger ones does.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from headjax.statistics import spectra
from headjax.statistics.discrimination import auc
from headjax.studies.spectral import screen
from headjax.studies.spectral.trajectory import ordered

SIGNALS = ("ratio", "integral", "selectivity")
CLEAR = 0.9  # of the area under the curve


def foretold(
  series: xr.Dataset, kind: str, final: Sequence[screen.Head]
) -> list[dict]:
  """How well each checkpoint tells the final circuit from the other heads.

  Args:
    series: of checkpoints.
    kind: of keys, whose selectivity is looked at.
    final: (layer, head) of the circuit.

  Returns:
    A row a step: its share of all steps, and of every signal the area under
    its curve, 0.5 by chance: of the participation ratio of this checkpoint,
    of its integral over the logarithm of steps up to here (NaN before the
    second step after 0), and of the selectivity. No rows for a circuit
    without heads, or of all heads.
  """
  series = ordered(series)
  steps = series.step.values
  ratio = series.ratio.sel(measure="entropy")
  ratio = ratio.transpose("step", "layer", "head").values
  chosen = screen.selectivity(series).sel(kind=kind)
  chosen = chosen.transpose("step", "layer", "head").values
  members = np.zeros(ratio.shape[1:], bool)
  for head in final:
    members[tuple(head)] = True
  if members.all() or not members.any():
    return []
  return [
    {
      "step": int(step),
      "share": float(step / steps.max()),
      "ratio": _auc(ratio[i], members),
      "integral": _integral_auc(ratio[: i + 1], steps[: i + 1], members),
      "selectivity": _auc(chosen[i], members),
    }
    for i, step in enumerate(steps)
  ]


def first_clear(
  rows: Sequence[dict], signal: str, *, clear: float = CLEAR
) -> int | None:
  """The first step from which a signal tells the circuit for good, or None.

  Args:
    rows: from `foretold`.
    signal: one of SIGNALS.
    clear: the area under the curve that it has at this step and later ones.
  """
  found = None
  for row in reversed(rows):
    if not row[signal] >= clear:
      break
    found = row["step"]
  return found


def _integral_auc(ratio, steps, members) -> float:
  if (steps > 0).sum() < 2:
    return float("nan")
  return _auc(spectra.trajectory_integral(ratio, steps), members)


def _auc(values, members) -> float:
  """Of the values `[layer, head]` of members and others."""
  return auc(values.ravel(), members.ravel())
