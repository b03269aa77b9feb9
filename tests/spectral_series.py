"""A made-up series of checkpoints of four heads in two layers.

Head (1, 0) becomes an induction head at step 40, after its ratio rose at 20;
(1, 1) joins it at step 80. Head (0, 0) attends to the first token throughout.
"""

import numpy as np
import xarray as xr

from headjax.data.probes import PLAIN

STEPS = np.array([0, 10, 20, 40, 80])
RATIO = {(1, 0): [1, 2, 9, 10, 10], (1, 1): [1, 1, 1, 1, 4]}
SELECTIVITY = {(1, 0): [1, 1, 10, 60, 90], (1, 1): [1, 1, 1, 5, 55]}


def series(order=range(5), **more) -> xr.Dataset:
  """The measurement, its steps in some order."""
  ratio = np.ones((5, 2, 2, 2))
  attention = np.ones((5, len(PLAIN), 2, 2))
  attention[:, PLAIN.index("first"), 0, 0] = 200
  for (layer, head), values in RATIO.items():
    ratio[:, :, layer, head] = np.array(values)[:, None]
  for (layer, head), values in SELECTIVITY.items():
    attention[:, PLAIN.index("induction"), layer, head] = values
  heads = ("layer", "head")
  found = xr.Dataset(
    {
      "ratio": (("step", "measure", *heads), ratio),
      "attention": (("step", "kind", *heads), attention),
      "baseline": (("step", *heads), np.ones((5, 2, 2))),
      "null": (("step", "draw", *heads), np.full((5, 7, 2, 2), 1.5)),
    },
    {
      "step": STEPS,
      "measure": ["entropy", "ipr"],
      "kind": list(PLAIN),
      "layer": [0, 1],
      "head": [0, 1],
    },
    attrs={"n_eligible": 100.0, "headjax_version": "test", "model": "made up"}
    | more,
  )
  return found.isel(step=list(order))
