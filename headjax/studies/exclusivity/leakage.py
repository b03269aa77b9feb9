"""Does a patch of one head reach what other heads read? Paper A, section 5.1.

`measure` gives the leakage from every head into every later one; the other
functions make every printed number from its dataset.
"""

import time
from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy.stats import spearmanr

from headjax import results
from headjax.data.pairs import PromptPairs
from headjax.geometry import energy
from headjax.interventions import leakage
from headjax.models import spaces, weights
from headjax.models.load import LoadedModel
from headjax.statistics.top_pairs import (
  ordered_pairs,
  percentile,
  top_heads,
)

DIMS = ("input", "source_layer", "source_head", "layer", "head")


def measure(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  examples: int = 64,
  progress: bool = False,
) -> xr.Dataset:
  """Leakage of every head's patch into every input of every later head.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts.
    examples: at once.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `leakage[input, source_layer, source_head, layer, head]` and
    `isotropic`, what evenly spread changes would leak, both shares of energy
    and NaN for heads that are not later; `energy[source_layer, source_head]`,
    by which a share becomes a sum over examples and positions again. The
    attribute `write_error` is the largest difference between patched attention
    outputs and clean ones plus the change, `write_error_relative` the same
    over the largest output.

  Raises:
    ValueError: the model norms its attention output, or cannot run the pairs.
  """
  [found] = measure_all(model, [pairs], examples=examples, progress=progress)
  return found


def measure_all(
  model: LoadedModel,
  prompts: Sequence[PromptPairs],
  *,
  examples: int = 64,
  progress: bool = False,
) -> list[xr.Dataset]:
  """The same on several tasks, which share what the weights alone decide.

  Args:
    model: from `load_model`.
    prompts: of each task, clean and reference.
    examples: at once.
    progress: whether to show progress bars.

  Returns:
    What `measure` returns, for each task; `wall_s` is an equal part of all.

  Raises:
    ValueError: as `measure` does, on any of the tasks.
  """
  leakage.check_additive(model.config)
  began = time.perf_counter()
  covariances = [
    leakage.change_covariance(
      model, pairs, examples=examples, progress=progress
    )
    for pairs in prompts
  ]
  shares = leakage.leakage(model, np.stack(covariances))
  errors = [leakage.write_error(model, pairs) for pairs in prompts]
  W_O = weights.per_query_head(model.params, model.config, "W_O")
  wall_s = (time.perf_counter() - began) / len(prompts)
  measured = zip(prompts, covariances, shares.share, errors, strict=True)
  found = []
  for pairs, covariance, share, error in measured:
    attrs = results.provenance(
      model=model,
      pairs=pairs,
      write_error=error.largest,
      write_error_relative=error.relative,
      wall_s=wall_s,
      chunk=examples,
    )
    energies = energy.energy(W_O, covariance)
    found.append(_dataset(model, share, shares.isotropic, energies, attrs))
  return found


def _dataset(model, shares, isotropic, energies, attrs) -> xr.Dataset:
  share, square = {"units": "1"}, {"units": "squares of the stream's units"}
  return xr.Dataset(
    {
      "leakage": (DIMS, shares, share),
      "isotropic": (DIMS, isotropic, share),
      "energy": (DIMS[1:3], energies, square),
    },
    coordinates(model),
    attrs=attrs,
  )


def summarise(found: xr.Dataset) -> list[dict]:
  """A row for each input: what a typical pair of heads leaks.

  Args:
    found: from `measure`.

  Returns:
    Of all pairs: how many there are, the medians of the leakage and of its
    ratio to the isotropic expectation, and the rank correlation of the two.
  """
  rows = []
  for letter in found.input.values:
    one = found.sel(input=letter)
    measured, even = one.leakage.values.ravel(), one.isotropic.values.ravel()
    there = np.isfinite(measured)
    rows.append(
      {
        "input": str(letter),
        "pairs": int(there.sum()),
        "median_leakage": median(measured),
        "median_ratio": median(ratio(measured, even)),
        "spearman": _spearman(measured[there], even[there]),
      }
    )
  return rows


def important_pairs(found: xr.Dataset, effects, count: int = 3) -> list[dict]:
  """A row for each input of each ordered pair of the most important heads.

  Args:
    found: from `measure`.
    effects: `[example, layer, head]` of the same model, which choose the
      heads; of the evaluation split, and once more of the discovery split.
    count: how many heads.

  Returns:
    The pair, its leakage, the ratio to the isotropic expectation, and the
    percentiles among all later readers of the source (`percentile`) and among
    all pairs of the same two layers (`layer_percentile`), of the same input.
  """
  rows = []
  for pair in ordered_pairs(top_heads(effects, count)):
    source, reader = pair[:2], pair[2:]
    for letter in found.input.values:
      table = found.leakage.sel(input=letter).values
      value = table[source + reader]
      even = found.isotropic.sel(input=letter).values[source + reader]
      layers = table[pair.source_layer, :, pair.layer]
      rows.append(
        pair._asdict()
        | {
          "input": str(letter),
          "leakage": float(value),
          "ratio": float(ratio(value, even)),
          "percentile": percentile(table[source], value),
          "layer_percentile": percentile(layers, value),
        }
      )
  return rows


def summarise_pairs(rows: Sequence[dict]) -> list[dict]:
  """A row for each input: medians over important pairs, of any models.

  Args:
    rows: from `important_pairs`, of one measurement or of several together.
  """
  found = []
  for letter in dict.fromkeys(row["input"] for row in rows):
    these = [row for row in rows if row["input"] == letter]
    column = {
      name: np.array([row[name] for row in these])
      for name in ("ratio", "percentile", "layer_percentile")
    }
    found.append(
      {"input": letter, "pairs": len(these)}
      | {f"median_{name}": median(x) for name, x in column.items()}
      | {
        f"share_{name}_above_90": float(np.mean(column[name] > 90))
        for name in ("percentile", "layer_percentile")
      }
    )
  return found


def coordinates(model: LoadedModel) -> dict:
  """The labels of `DIMS`."""
  n_layers, n_heads = model.config.n_layers, model.config.n_heads
  sizes = dict(zip(DIMS[1:], (n_layers, n_heads) * 2, strict=True))
  indices = {name: np.arange(n) for name, n in sizes.items()}
  return {"input": list(spaces.inputs(model.config))} | indices


def ratio(numerator, denominator):
  """NaN for 0 / 0 and where nothing is expected."""
  denominator = np.where(np.equal(denominator, 0), np.nan, denominator)
  return numerator / denominator


def median(values) -> float:
  """Of those that are not NaN; NaN if there are none."""
  values = np.asarray(values)
  values = values[~np.isnan(values)]
  return float(np.median(values)) if values.size else float("nan")


def _spearman(first, second) -> float:
  """NaN where a rank correlation has no meaning."""
  if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
    return float("nan")
  return float(spearmanr(first, second).statistic)
