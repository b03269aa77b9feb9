"""Which way do the top heads' effects take? Paper A, section 5.3 and B.3.

`measure` clamps, for each top head, everything that the paper clamps: single
later top heads, the later heads of one index (its own lane, and every other
index as a control), later heads, MLPs, and both. The other functions make every
printed number from its dataset. A reduction is no flow through what is clamped.
"""

import numpy as np
import xarray as xr

from headjax.data.pairs import PromptPairs
from headjax.interventions.clamps import clamp_heads, lane, one_head
from headjax.interventions.path_splits import (
  RELEASED_FIRST,
  path_holds,
  path_splits,
)
from headjax.models.load import LoadedModel
from headjax.statistics.top_pairs import Head, top_heads

TOP = 5
LEAST = 0.05  # logits; ratios to smaller effects are not reported


def measure(
  model: LoadedModel,
  pairs: PromptPairs,
  effects,
  *,
  top: int = TOP,
  progress: bool = False,
) -> xr.Dataset:
  """Patches the top heads under every clamp.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts.
    effects: `[example, layer, head]` of the same model, which choose the
      heads.
    top: how many heads.
    progress: whether to show a progress bar.

  Returns:
    The dataset of `clamp_heads`; the sources are in falling order of their
    effects, and the holds are "nothing", "heads", "mlps", "everything",
    "lane 0", "lane 1", ... by how far the index is from the source's, and the
    top heads by name.
  """
  config = model.config
  heads = top_heads(effects, top)
  holds = path_holds(config)
  holds |= {f"lane {i}": lane(config, i) for i in range(config.n_heads)}
  holds |= {_name(head): one_head(config, *head) for head in heads}
  return clamp_heads(model, pairs, holds, sources=heads, progress=progress)


def splits(data: xr.Dataset) -> list[dict]:
  """A row for each top head: its effect by paths, in both orders.

  Args:
    data: of `measure`.

  Returns:
    The source and, in logits, `total`, `direct`, `interaction` and the parts,
    named after the clamp that is released first, such as
    `via_mlps_heads_first`; and `relative`, |interaction / total|.
  """
  found = path_splits(data.effect).mean("example")
  rows = []
  for i, source in enumerate(_sources(data)):
    one = found.isel(source=i)
    row = source | {
      name: float(one[name]) for name in ("total", "direct", "interaction")
    }
    for first in RELEASED_FIRST:
      for part in ("via_mlps", "via_attention"):
        row[f"{part}_{first}_first"] = float(
          one[part].sel(released_first=first)
        )
    row["relative"] = abs(_ratio(row["interaction"], row["total"]))
    rows.append(row)
  return rows


def summarise_splits(rows: list[dict]) -> dict[str, float]:
  """Shares of the summed effects, over heads of one task or of several.

  Args:
    rows: of `splits`.

  Returns:
    The number of `cases`, their `total` in logits; of the direct effect, the
    parts and the interaction the sum over that total; the interaction also by
    its absolute size, the median of `relative`, and how many of these are
    above 0.2 and 0.5.
  """
  columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
  total = float(columns["total"].sum())
  parts = [
    name for name in columns if name.startswith(("direct", "via", "inter"))
  ]
  relative = columns["relative"]
  return (
    {"cases": len(rows), "total": total}
    | {f"{name}_share": _ratio(columns[name].sum(), total) for name in parts}
    | {
      "absolute_interaction_share": _ratio(
        np.abs(columns["interaction"]).sum(), total
      ),
      "median_relative": float(np.nanmedian(relative))
      if np.isfinite(relative).any()
      else float("nan"),
      "above_20_percent": int((relative > 0.2).sum()),
      "above_50_percent": int((relative > 0.5).sum()),
    }
  )


def pair_clamps(data: xr.Dataset, count: int = 3) -> list[dict]:
  """A row for each ordered pair of top heads: the later one is clamped.

  Args:
    data: of `measure`.
    count: of how many top heads, at most those measured.

  Returns:
    The pair, whether they are of the `same_index`, the `effect` of the source
    in logits, and how much of it the clamp takes away: `reduction`, NaN for
    effects below 0.05.
  """
  e = data.effect.mean("example")
  heads = [Head(**_plain(source)) for source in _sources(data)[:count]]
  return [
    {"source_layer": first.layer, "source_head": first.head}
    | {"layer": second.layer, "head": second.head}
    | {"same_index": first.head == second.head}
    | _reduction(e.isel(source=i), _name(second))
    for i, first in enumerate(heads)
    for second in heads
    if first.layer < second.layer
  ]


def part_clamps(data: xr.Dataset) -> list[dict]:
  """A row for each top head and clamp of all later heads, or of all MLPs.

  Args:
    data: of `measure`.

  Returns:
    The source, the `clamped` part, `effect` and `reduction` as in
    `pair_clamps`.
  """
  e = data.effect.mean("example")
  return [
    source | {"clamped": part} | _reduction(e.isel(source=i), part)
    for i, source in enumerate(_sources(data))
    for part in ("heads", "mlps", "everything")
  ]


def lane_clamps(data: xr.Dataset) -> dict[str, float]:
  """What clamping a whole lane takes from the top heads' summed effects.

  Args:
    data: of `measure`.

  Returns:
    The summed `effect` in logits, the `reduction` by the sources' own lanes,
    the mean reduction by the lanes of every other index, `control`, and its
    largest, `largest_control`; NaN where the sum is below 0.05.

  Source: paper A, section 5.3 (21% against 0.6%).
  """
  e = data.effect.mean(("example",)).sum("source")
  whole = float(e.sel(hold="nothing"))
  lanes = [name for name in data.hold.values if name.startswith("lane ")]
  own, *others = (_ratio(whole - float(e.sel(hold=n)), whole) for n in lanes)
  return {
    "effect": whole,
    "reduction": own,
    "control": float(np.mean(others)) if others else float("nan"),
    "largest_control": float(np.max(others)) if others else float("nan"),
  }


def _reduction(effects: xr.DataArray, hold: str) -> dict[str, float]:
  whole = float(effects.sel(hold="nothing"))
  clamped = float(effects.sel(hold=hold))
  return {"effect": whole, "reduction": _ratio(whole - clamped, whole)}


def _ratio(part: float, whole: float) -> float:
  """NaN where the whole is too small."""
  return float(part / whole) if abs(whole) >= LEAST else float("nan")


def _sources(data: xr.Dataset) -> list[dict[str, int]]:
  names = ("source_layer", "source_head")
  columns = (data[name].values.tolist() for name in names)
  return [
    dict(zip(names, pair, strict=True)) for pair in zip(*columns, strict=True)
  ]


def _plain(source: dict[str, int]) -> dict[str, int]:
  return {name.removeprefix("source_"): i for name, i in source.items()}


def _name(head: Head) -> str:
  return f"L{head.layer}H{head.head}"
