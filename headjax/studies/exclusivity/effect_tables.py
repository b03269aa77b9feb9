"""Which numbers do effects of heads give? Tables of sections 5.2, 5.3 and on.

Each function makes one table out of the results that there are: rows with run,
design, seed, corpus and task in front.
"""

import itertools
from typing import Any

import xarray as xr

from headjax.studies.exclusivity import (
  concentration,
  interactions,
  lanes,
  published,
  selectivity,
  self_repair,
)
from headjax.studies.exclusivity.store import LABELS, Store, labels

Rows = list[dict[str, Any]]


def performance(store: Store, draws: int) -> Rows:
  """Table 5, with the parameters and validation losses of tables 2 and 4."""
  del draws
  rows = []
  for data in store.all("heads-evaluation"):
    head = labels(data)
    model = {n: data.attrs[n] for n in ("parameters", "validation_loss")}
    beside = published.columns("performance", head)
    beside |= published.model_columns(head)
    found = concentration.performance(data)
    rows.append({**head, **found, **model, **beside})
  return rows


def spread(store: Store, draws: int) -> Rows:
  """Tables 3 and 6: E, Neff, its factors and its checks."""
  rows = []
  for data in store.all("heads-evaluation"):
    beside = {
      name: value
      for table in ("spread", "factors")
      for name, value in published.columns(table, labels(data)).items()
    }
    found = concentration.summarise(data, draws=draws)
    rows.append({**labels(data), **found, **beside})
  return rows


def differences(store: Store, draws: int) -> Rows:
  """Neff of every design less that of every other, of equal seeds."""
  rows, kept = [], {}
  for data in store.all("heads-evaluation"):
    kept.setdefault(_group(data), []).append(
      (data, concentration.neff_resamples(data, draws=draws))
    )
  for group in kept.values():
    for (a, first), (b, second) in itertools.combinations(group, 2):
      found = concentration.difference(a, b, (first, second))
      rows.append(
        {
          "a": a.attrs["design"],
          "b": b.attrs["design"],
          "seed": a.attrs["seed"],
          "corpus": a.attrs["corpus"],
          "task": a.attrs["task"],
        }
        | found
      )
  return rows


def _group(data: xr.Dataset) -> tuple:
  """What two models must share to be compared."""
  shape = data.sizes["layer"] * data.sizes["head"]
  names = ("seed", "corpus", "task", "pairs_digest")
  return (shape, *(data.attrs[name] for name in names))


def lane_scores(store: Store, draws: int) -> Rows:
  """Section 5.3: Lambda, p, and the top heads."""
  rows = []
  for data, other in store.together("heads-discovery", "heads-evaluation"):
    n_tasks = len(store.tasks(data.attrs["run"], "heads-discovery"))
    found = lanes.summarise(data, other, n_tasks=n_tasks, draws=draws)
    beside = published.columns("lanes", labels(data))
    rows.append({**labels(data), **found, **beside})
  return rows


def heads(store: Store, draws: int) -> Rows:
  """Figure 5: the mean effects of every head."""
  del draws
  return [
    {**labels(data), **row}
    for data, other in store.together("heads-discovery", "heads-evaluation")
    for row in lanes.heads(data, other)
  ]


def halves(store: Store, draws: int) -> Rows:
  """Section 7: Lambda within shared and within rotating indices."""
  return [
    {**labels(data), **lanes.halves(data, draws=draws)}
    for data in store.all("heads-discovery")
    if data.sizes["head"] > 2
  ]


def curves(store: Store, draws: int) -> Rows:
  """Figure 6, a and b: accuracy and Lambda in training."""
  return [
    {**labels(data), **row}
    for data in store.all("lanes-series")
    for row in lanes.curve(data, draws=draws)
  ]


def interaction_pairs(store: Store, draws: int) -> Rows:
  """Pairs of top heads: are their effects additive?"""
  del draws
  return [
    {**labels(data), **row}
    for data in store.all("interactions")
    for row in interactions.pairs_of(data)
  ]


def additivity(store: Store, draws: int) -> Rows:
  """The top heads patched together, against the sum of their effects."""
  del draws
  return [
    {**labels(data), **interactions.summarise(data)}
    for data in store.all("interactions")
  ]


def whole_lanes(store: Store, draws: int) -> Rows:
  """Every lane patched whole, against its heads one at a time."""
  del draws
  return [
    {**labels(data), **row}
    for data, single in store.together("selectivity", "heads-evaluation")
    for row in selectivity.lanes(data, single)
  ]


def across_tasks(store: Store, draws: int) -> Rows:
  """What every task's top heads and lane do to every task."""
  del draws
  return [
    {**labels(data), **row}
    for data in store.all("selectivity")
    for row in selectivity.summarise(data)
  ]


def selectivities(store: Store, draws: int) -> Rows:
  """What a set does to its own task, less what it does to the others."""
  rows = across_tasks(store, draws)
  found = []
  for run in dict.fromkeys(row["run"] for row in rows):
    mine = [row for row in rows if row["run"] == run]
    head = {name: mine[0][name] for name in LABELS if name != "task"}
    for row in selectivity.selectivity(mine):
      found.append(head | {"task": row["source"]} | row)
  return found


def repair(store: Store, draws: int) -> Rows:
  """Total and direct effect of the top heads, and how many are repaired."""
  del draws
  return [
    {**labels(data), **self_repair.summarise(data, total)}
    for data, total in store.together("self-repair", "heads-evaluation")
  ]


def repair_heads(store: Store, draws: int) -> Rows:
  """Total minus direct effect of every head."""
  return [
    {**labels(data), **row}
    for data, total in store.together("self-repair", "heads-evaluation")
    for row in self_repair.heads(data, total, draws=min(draws, 2000))
  ]
