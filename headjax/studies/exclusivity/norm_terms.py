"""How much does leakage leave out? The change of the readers' norms' scale.

Leakage takes a reader as linear with its norm's scale held. Paper A names the
term that this leaves out (section 3) and did not measure it.
"""

import time

import numpy as np
import xarray as xr

from headjax import results
from headjax.data.pairs import PromptPairs
from headjax.interventions import norm_term
from headjax.models.load import LoadedModel
from headjax.studies.exclusivity.leakage import (
  DIMS,
  coordinates,
  median,
  ratio,
)


def measure(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  examples: int = 16,
  progress: bool = False,
) -> xr.Dataset:
  """What the readers' norms do to a change, which leakage leaves out.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts.
    examples: at once.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `left_out` and `response`, `[input, source_layer,
    source_head, layer, head]`: squares of the part of the reader's first-order
    response that its norm's change of scale makes, and of all of it, summed
    over examples and positions.

  Raises:
    ValueError: the readers have no norm of their own, or the model norms its
      attention output.
  """
  began = time.perf_counter()
  left_out, response = norm_term.norm_term(
    model, pairs, examples=examples, progress=progress
  )
  units = {"units": "squares of the input's units"}
  return xr.Dataset(
    {"left_out": (DIMS, left_out, units), "response": (DIMS, response, units)},
    coordinates(model),
    attrs=results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=examples,
    ),
  )


def summarise(found: xr.Dataset) -> list[dict]:
  """A row for each input: the median size of what leakage leaves out.

  Args:
    found: from `measure`.

  Returns:
    Medians over pairs of the norm of what is left out over that of the whole
    response, and the same of all pairs pooled.
  """
  rows = []
  for letter in found.input.values:
    one = found.sel(input=letter)
    left_out, response = one.left_out.values, one.response.values
    pooled = np.nansum(left_out) / np.nansum(response)
    rows.append(
      {
        "input": str(letter),
        "median_share": median(np.sqrt(ratio(left_out, response))),
        "pooled_share": float(np.sqrt(pooled)),
      }
    )
  return rows
