"""How do later heads answer a patch? Paper A, section 5.1, second half.

`measure` sums what every pair of heads needs, in one sweep; the other functions
make every printed number from its dataset.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy.stats import spearmanr

from headjax.data.pairs import PromptPairs
from headjax.interventions.responses import PATHS, head_responses
from headjax.models.load import LoadedModel
from headjax.statistics.top_pairs import ordered_pairs, percentile, top_heads

TOP = 3


def measure(
  model: LoadedModel, pairs: PromptPairs, *, progress: bool = False
) -> xr.Dataset:
  """Direct and total responses of all later heads to each head's patch.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts.
    progress: whether to show a progress bar.

  Returns:
    The dataset of `head_responses`.
  """
  return head_responses(model, pairs, progress=progress)


def ratios(data: xr.Dataset) -> xr.Dataset:
  """How much of a response is there before the network answers.

  Args:
    data: of `measure`; or sums of several such, of one model.

  Returns:
    `cosine` of direct and total response, pooled over examples and positions,
    `norm_ratio`, direct over total, and their product `projection`; NaN where a
    response is 0.
  """
  direct, total = (
    data[name].where(data[name] > 0)
    for name in ("direct_square", "total_square")
  )
  return xr.Dataset(
    {
      "cosine": data.dot / np.sqrt(direct * total),
      "norm_ratio": np.sqrt(direct / total),
      "projection": data.dot / total,
    }
  )


def summarise(data: xr.Dataset) -> list[dict]:
  """A row for each input: medians over all pairs of heads.

  Args:
    data: of `measure`.
  """
  rows = []
  for letter in data.input.values:
    one = ratios(data).sel(input=letter)
    rows.append(
      {"input": str(letter), "pairs": int(one.cosine.notnull().sum())}
      | {f"median_{name}": _median(one[name]) for name in one}
    )
  return rows


def important_pairs(data: xr.Dataset, effects, count: int = TOP) -> list[dict]:
  """A row for each input of each ordered pair of the most important heads.

  Args:
    data: of `measure`.
    effects: `[example, layer, head]` of the same model, which choose the
      heads; of the evaluation split, and once more of the discovery split.
    count: how many heads.

  Returns:
    The pair, the input, and its `cosine`, `norm_ratio` and `projection`.
  """
  found = ratios(data)
  return [
    pair._asdict()
    | {"input": str(letter)}
    | {
      name: float(found[name].sel(**pair._asdict(), input=letter))
      for name in found
    }
    for pair in ordered_pairs(top_heads(effects, count))
    for letter in data.input.values
  ]


def attention_changes(
  data: xr.Dataset, effects, count: int = TOP
) -> list[dict]:
  """A row for each ordered pair of the most important heads.

  Args:
    data: of `measure`.
    effects: as in `important_pairs`.
    count: how many heads.

  Returns:
    The pair, and for "query", "keys", "direct" and "total" the mean total
    variation, `query` and so on, and its percentile among all later heads of
    the source, `query_percentile` and so on.
  """
  rows = []
  for pair in ordered_pairs(top_heads(effects, count)):
    row = pair._asdict()
    for path in PATHS:
      change = data.attention_change.sel(path=path).values
      row[path] = float(change[pair])
      row[f"{path}_percentile"] = percentile(change[pair[:2]], row[path])
    rows.append(row)
  return rows


def summarise_changes(rows: Sequence[dict]) -> dict[str, float]:
  """What important pairs have in common, of any models.

  Args:
    rows: of `attention_changes`, of one measurement or of several together.

  Returns:
    `pairs`, medians over them, and `query_share`, of how many pairs the query
    alone changes more than the keys alone.
  """
  columns = [*PATHS, *(f"{path}_percentile" for path in PATHS)]
  more = [row["query"] > row["keys"] for row in rows]
  return {
    "pairs": len(rows),
    "query_share": float(np.mean(more)) if rows else float("nan"),
  } | {
    f"median_{name}": _median([row[name] for row in rows]) for name in columns
  }


def changes_of_all(data: xr.Dataset, effects, count: int = TOP) -> list[dict]:
  """A row for each important head: what its patch does to all later heads.

  Args:
    data: of `measure`.
    effects: as in `important_pairs`.
    count: how many heads.

  Returns:
    The source, the number of later `heads`, and the medians over them.
  """
  rows = []
  for layer, head in top_heads(effects, count):
    change = data.attention_change.sel(source_layer=layer, source_head=head)
    later = change.transpose("path", "layer", "head").values
    n = int(np.isfinite(later[0]).sum())
    rows.append(
      {"source_layer": layer, "source_head": head, "heads": n}
      | {f"median_{p}": _median(x) for p, x in zip(PATHS, later, strict=True)}
    )
  return rows


def follows_leakage(
  data: xr.Dataset, leakage: xr.DataArray, effects, count: int = TOP
) -> list[dict]:
  """A row for each important head: do the queries that it reaches turn away?

  Args:
    data: of `measure`.
    leakage: `[input, source_layer, source_head, layer, head]`, of the same
      model and prompts.
    effects: as in `important_pairs`.
    count: how many heads.

  Returns:
    The source, and the rank correlation over later heads of the leakage into Q
    and the attention change by the query alone.
  """
  rows = []
  for layer, head in top_heads(effects, count):
    source = {"source_layer": layer, "source_head": head}
    change = data.attention_change.sel(**source, path="query").values
    leaked = leakage.sel(**source, input="Q").values
    rows.append(source | {"spearman": _spearman(leaked, change)})
  return rows


def _median(values) -> float:
  """Of those that are not NaN; NaN if there are none."""
  values = np.asarray(values, np.float64)
  values = values[~np.isnan(values)]
  return float(np.median(values)) if values.size else float("nan")


def _spearman(first: np.ndarray, second: np.ndarray) -> float:
  """Of pairs without NaN; NaN where a rank correlation has no meaning."""
  there = np.isfinite(first) & np.isfinite(second)
  first, second = first[there], second[there]
  if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
    return float("nan")
  return float(spearmanr(first, second).statistic)
