"""Which numbers do leakage, clamps and alignment give? Tables of 5.1, 5.4, B.

Each function makes one table out of the results that there are: rows with run,
design, seed, corpus and task in front. Where top heads are chosen, `chosen_on`
says by the effects on which split.
"""

from collections.abc import Callable, Iterator
from typing import Any

import xarray as xr

from headjax.interventions.series import at_step
from headjax.studies.exclusivity import (
  alignment,
  circuits,
  coordinates,
  correspondence,
  edges,
  leakage,
  norm_terms,
  paths,
  published,
  responses,
  scalar_part,
  task_gradients,
)
from headjax.studies.exclusivity.store import Store, labels

Rows = list[dict[str, Any]]
SPLITS = ("evaluation", "discovery")


def leakages(store: Store, draws: int) -> Rows:
  """Section 5.1: what a typical pair of heads leaks, by input."""
  del draws
  return _simple(store, "leakage", leakage.summarise)


def leakage_pairs(store: Store, draws: int) -> Rows:
  """Section 5.1: what pairs of top heads leak."""
  del draws
  return _of_top_heads(store, "leakage", leakage.important_pairs)


def left_out(store: Store, draws: int) -> Rows:
  """Section 3: the size of the term that leakage leaves out."""
  del draws
  return _simple(store, "norm-terms", norm_terms.summarise)


def all_responses(store: Store, draws: int) -> Rows:
  """Section 5.1: direct and total response of a typical pair of heads."""
  del draws
  return _simple(store, "responses", responses.summarise)


def response_pairs(store: Store, draws: int) -> Rows:
  """Section 5.1: direct and total response of pairs of top heads."""
  del draws
  return _of_top_heads(store, "responses", responses.important_pairs)


def attention_pairs(store: Store, draws: int) -> Rows:
  """Section 5.1: how far pairs of top heads turn attention away."""
  del draws
  return _of_top_heads(store, "responses", responses.attention_changes)


def attention_all(store: Store, draws: int) -> Rows:
  """Section 5.1: how far top heads turn all later heads' attention away."""
  del draws
  return _of_top_heads(store, "responses", responses.changes_of_all)


def leakage_attention(store: Store, draws: int) -> Rows:
  """Section 5.1: does leakage into queries foretell where attention turns?"""
  del draws
  rows = []
  for data, leaked, *effects in store.together(
    "responses", "leakage", *(f"heads-{split}" for split in SPLITS)
  ):
    for split, chosen in zip(SPLITS, effects, strict=True):
      found = responses.follows_leakage(data, leaked.leakage, chosen.effect)
      rows += [{**labels(data), "chosen_on": split} | row for row in found]
  return rows


def path_heads(store: Store, draws: int) -> Rows:
  """Figure 8: the effect of every top head by paths, in both orders."""
  del draws
  return [head | r for head, d in _paths(store) for r in paths.splits(d)]


def path_shares(store: Store, draws: int) -> Rows:
  """Appendix B.3: the shares of the paths in the top heads' summed effects."""
  del draws
  return [
    head | paths.summarise_splits(paths.splits(data))
    for head, data in _paths(store)
  ]


def pair_clamps(store: Store, draws: int) -> Rows:
  """Figure 6, d: later top heads are clamped, one at a time."""
  del draws
  return [head | r for head, d in _paths(store) for r in paths.pair_clamps(d)]


def part_clamps(store: Store, draws: int) -> Rows:
  """Figure 6, e: all later heads, all later MLPs, or both are clamped."""
  del draws
  return [head | r for head, d in _paths(store) for r in paths.part_clamps(d)]


def lane_clamps(store: Store, draws: int) -> Rows:
  """Section 5.3: whole lanes are clamped, the sources' own and others."""
  del draws
  return [head | paths.lane_clamps(data) for head, data in _paths(store)]


def gradients(store: Store, draws: int) -> Rows:
  """Section 5.3: how alike the layers' gradients are, by index."""
  del draws
  return _simple(store, "task-gradients", task_gradients.summarise)


def gradient_curves(store: Store, draws: int) -> Rows:
  """Section 5.3: the same at every checkpoint."""
  del draws
  return _curve(store, "task-gradients-series", task_gradients.summarise)


def mean_writes(store: Store, draws: int) -> Rows:
  """Beyond the paper: do heads of one lane write in one direction?"""
  del draws
  return _simple(store, "task-gradients", lambda d: [task_gradients.writes(d)])


def coordinate_shares(store: Store, draws: int) -> Rows:
  """Appendix B.2: the share of the ten best coordinates, in three bases."""
  parts = ("coordinates-validation", "coordinates-evaluation")
  return [
    {**labels(ranked)} | row
    for ranked, data in store.together(*parts)
    for row in coordinates.summarise(ranked, data, draws=min(draws, 1000))
  ]


def alignments(store: Store, draws: int) -> Rows:
  """Section 5.4: do heads read with their values what they write?"""
  del draws
  return _simple(store, "alignment", lambda d: [alignment.summarise(d)])


def alignment_curves(store: Store, draws: int) -> Rows:
  """Figure 7: the same at every checkpoint."""
  del draws
  return _curve(store, "alignment-series", lambda d: [alignment.summarise(d)])


def scalar_parts(store: Store, draws: int) -> Rows:
  """Section 6: removing the scalar part of value maps, and a control."""
  del draws
  return _simple(store, "scalar-part", lambda d: [scalar_part.summarise(d)])


def scalar_layers(store: Store, draws: int) -> Rows:
  """Section 5.4: the sign of the scalar part, layer by layer."""
  del draws
  return _simple(store, "scalar-part", scalar_part.by_layer)


def correspondences(store: Store, draws: int) -> Rows:
  """Beyond the paper: lanes of heads that are matched, not numbered."""
  return [
    {**labels(found)} | row
    for found, data in store.together("correspondence", "heads-evaluation")
    for row in correspondence.summarise(found, data, draws=draws)
  ]


def edge_correlations(store: Store, draws: int) -> Rows:
  """Table 7: do kernels tell how much edges matter, by input?"""
  del draws
  rows = _simple(store, "edges", edges.summarise)
  return [row | published.edge_columns(row) for row in rows]


def circuit_sizes(store: Store, draws: int) -> Rows:
  """Appendix B.3: circuits at three thresholds, and what their heads read."""
  del draws
  return _simple(store, "circuits", circuits.summarise)


def _simple(
  store: Store, part: str, summarise: Callable[[xr.Dataset], Rows]
) -> Rows:
  """Rows that need one result each."""
  return [
    {**labels(data)} | row
    for data in store.all(part)
    for row in summarise(data)
  ]


def _curve(
  store: Store, part: str, summarise: Callable[[xr.Dataset], Rows]
) -> Rows:
  """Rows of every checkpoint of a series."""
  return [
    {**labels(data), "step": int(step)} | row
    for data in store.all(part)
    for step in data.step.values
    for row in summarise(at_step(data, int(step)))
  ]


def _of_top_heads(store: Store, part: str, rows_of: Callable) -> Rows:
  """The rows of a part's results that depend on which heads are the top."""
  return [
    head | row
    for head, data, effects in _chosen(store, part)
    for row in rows_of(data, effects)
  ]


def _chosen(store: Store, part: str) -> Iterator[tuple]:
  """Heads of rows, results, and the effects that choose their top heads."""
  names = [f"heads-{split}" for split in SPLITS]
  for data, *effects in store.together(part, *names):
    for split, found in zip(SPLITS, effects, strict=True):
      yield {**labels(data), "chosen_on": split}, data, found.effect


def _paths(store: Store) -> Iterator[tuple]:
  """Heads of rows and clamped effects, for both choices of top heads."""
  for part, split in zip(("paths", "paths-discovery"), SPLITS, strict=True):
    for data in store.all(part):
      yield {**labels(data), "chosen_on": split}, data
