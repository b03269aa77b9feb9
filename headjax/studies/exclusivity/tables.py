"""Which numbers does the study print? Tables of flat rows, from saved results.

The same call on the same folder gives every printed number again. `over_seeds`
sums a table up by design.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headjax.statistics import seed_interval
from headjax.studies.exclusivity import effect_tables, path_tables
from headjax.studies.exclusivity.store import Store

Rows = list[dict[str, Any]]


# Name of the CSV file -> what makes its rows.
TABLES: Mapping[str, Callable[[Store, int], Rows]] = {
  "performance": effect_tables.performance,
  "concentration": effect_tables.spread,
  "differences": effect_tables.differences,
  "lanes": effect_tables.lane_scores,
  "heads": effect_tables.heads,
  "halves": effect_tables.halves,
  "curves": effect_tables.curves,
  "interaction-pairs": effect_tables.interaction_pairs,
  "additivity": effect_tables.additivity,
  "whole-lanes": effect_tables.whole_lanes,
  "across-tasks": effect_tables.across_tasks,
  "selectivity": effect_tables.selectivities,
  "self-repair": effect_tables.repair,
  "self-repair-heads": effect_tables.repair_heads,
  "leakage": path_tables.leakages,
  "leakage-pairs": path_tables.leakage_pairs,
  "norm-terms": path_tables.left_out,
  "responses": path_tables.all_responses,
  "response-pairs": path_tables.response_pairs,
  "attention-pairs": path_tables.attention_pairs,
  "attention-all": path_tables.attention_all,
  "leakage-attention": path_tables.leakage_attention,
  "paths": path_tables.path_heads,
  "path-shares": path_tables.path_shares,
  "pair-clamps": path_tables.pair_clamps,
  "part-clamps": path_tables.part_clamps,
  "lane-clamps": path_tables.lane_clamps,
  "task-gradients": path_tables.gradients,
  "task-gradients-curves": path_tables.gradient_curves,
  "mean-writes": path_tables.mean_writes,
  "coordinates": path_tables.coordinate_shares,
  "alignment": path_tables.alignments,
  "alignment-curves": path_tables.alignment_curves,
  "scalar-part": path_tables.scalar_parts,
  "scalar-layers": path_tables.scalar_layers,
  "correspondence": path_tables.correspondences,
  "edges": path_tables.edge_correlations,
  "circuits": path_tables.circuit_sizes,
}
# The columns beside the labels that part a table's rows within a design.
BY = {
  "heads": ("layer", "head"),
  "self-repair-heads": ("layer", "head"),
  "curves": ("step",),
  "interaction-pairs": None,  # other heads in each run
  "whole-lanes": None,  # a lane's number says nothing across seeds
  "differences": ("a", "b"),
  "across-tasks": ("source", "kind"),
  "selectivity": ("kind",),
  "leakage": ("input",),
  "leakage-pairs": ("chosen_on", "input"),
  "norm-terms": ("input",),
  "responses": ("input",),
  "response-pairs": ("chosen_on", "input"),
  "attention-pairs": ("chosen_on",),
  "attention-all": ("chosen_on",),
  "leakage-attention": ("chosen_on",),
  "paths": None,
  "path-shares": ("chosen_on",),
  "pair-clamps": None,
  "part-clamps": None,
  "lane-clamps": ("chosen_on",),
  "task-gradients": ("gradient",),
  "task-gradients-curves": ("step", "gradient"),
  "coordinates": ("kind",),
  "alignment-curves": ("step",),
  "scalar-layers": ("layer",),
  "correspondence": ("by",),
  "edges": ("input",),
  "circuits": ("threshold",),
}


def over_seeds(name: str, rows: Rows) -> Rows:
  """Every number of a table as a mean over seeds with its 95% interval.

  Args:
    name: of the table, which says what its rows are parted by.
    rows: of the table.

  Returns:
    Rows with the `table`, the design, corpus and task, the `quantity`, its
    `estimate`, `low`, `high` and `n_seeds`; numbers of the paper and of
    models without a seed are left out.
  """
  by = BY.get(name, ())
  if by is None:
    return []
  parted: dict[tuple, Rows] = {}
  head = [n for n in ("design", "corpus", "task") if rows and n in rows[0]]
  for row in rows:
    if row["seed"] >= 0:
      parted.setdefault(tuple(row[n] for n in (*head, *by)), []).append(row)
  found = []
  for at, group in parted.items():
    where = dict(zip((*head, *by), at, strict=True))
    for quantity in _quantities(group[0], where):
      values = [row[quantity] for row in group]
      if any(not isinstance(v, int | float) for v in values):
        continue
      interval = seed_interval(values)
      found.append(
        {
          "table": name,
          **{n: where.get(n, "") for n in ("design", "corpus", "task")},
          "at": " ".join(str(where[n]) for n in by),
          "quantity": quantity,
          "estimate": interval.estimate,
          "low": interval.low,
          "high": interval.high,
          "n_seeds": interval.n_seeds,
        }
      )
  return found


def _quantities(row: Mapping, where: Mapping) -> Sequence[str]:
  """The columns that hold measured numbers."""
  return [
    name
    for name, value in row.items()
    if name not in where
    and name not in ("seed", "run")
    and not name.startswith("paper_")
    and isinstance(value, int | float)
  ]
