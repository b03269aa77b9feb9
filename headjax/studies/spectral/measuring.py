"""What is measured of every head of one checkpoint? Spectrum and attention.

One pass over the rows of a probe serves steps 1 and 2; everything that is
printed is computed from what it saves.
"""

import time

import numpy as np
import xarray as xr

from headjax import results
from headjax.data.probes import Probe
from headjax.interventions import chunks
from headjax.interventions.attention_sums import AttentionSums
from headjax.interventions.query_rows import query_rows
from headjax.models.load import LoadedModel
from headjax.statistics import spectra


def measure(
  model: LoadedModel,
  probe: Probe,
  *,
  draws: int = 500,
  seed: int = 2026,
  budget_bytes: int = 2 * chunks.GIB,
  progress: bool = False,
) -> xr.Dataset:
  """Participation ratios and attention of all heads at the queries.

  Args:
    model: from `load_model`.
    probe: rows with a query each.
    draws: random keys of each row, for the null.
    seed: of these draws.
    budget_bytes: memory per device, beside the parameters.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `ratio[measure, layer, head]`, in directions, and mean
    attention, in shares: `attention[kind, layer, head]` over `examples[kind]`
    rows, `baseline[layer, head]` and `null[draw, layer, head]`; `n_eligible`
    is in the attributes.

  Raises:
    ValueError: rows that the model cannot run, or a budget that not one fits.

  Source: paper B, steps 1 and 2.
  """
  began = time.perf_counter()
  sums, total = AttentionSums(probe, draws=draws, seed=seed), 0
  for rows in query_rows(
    model, probe, budget_bytes=budget_bytes, progress=progress
  ):
    sums.add(rows.place, rows.pattern)
    total = total + spectra.gram(rows.z)
  attention, baseline, null = sums.means()
  ratio = [spectra.participation_ratio(total, kind) for kind in spectra.KINDS]
  share = {"units": "1"}
  heads = ("layer", "head")
  return xr.Dataset(
    {
      "ratio": (
        ("measure", *heads),
        np.stack(ratio),
        {"long_name": "participation ratio", "units": "directions"},
      ),
      "attention": (
        ("kind", *heads),
        attention,
        share | {"long_name": "mean attention to the keys of a kind"},
      ),
      "baseline": (heads, baseline, share),
      "null": (("draw", *heads), null, share),
      "examples": ("kind", sums.examples),
    },
    {
      "measure": list(spectra.KINDS),
      "kind": list(sums.kinds),
      "layer": np.arange(model.config.n_layers),
      "head": np.arange(model.config.n_heads),
    },
    attrs=results.provenance(
      model=model,
      pairs=probe,
      wall_s=time.perf_counter() - began,
      chunk=rows.place.stop - rows.place.start,
      rows=len(probe),
      seed=seed,
      n_eligible=sums.n_eligible,
      chance=probe.chance,
    ),
  )
