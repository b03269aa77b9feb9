"""What do several cells say together? A row each, and tests over all of them.

A cell's row is all that the table needs: plain numbers and names, which go to
the disk as JSON.
"""

import json
import math
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headjax.checks import check, fail
from headjax.files import atomic
from headjax.statistics.multiplicity import benjamini_hochberg, holm
from headjax.studies.writers.cell import GROUPS, Cell
from headjax.studies.writers.lesions import SignShuffle
from headjax.studies.writers.released import name_of
from headjax.studies.writers.rule_outs import Overlap, equivalence

Row = dict[str, Any]
CELL = "cell.json"


def cell_row(
  model: str,
  task: str,
  found: Cell,
  *,
  shuffle: SignShuffle | None = None,
  tables: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> Row:
  """Everything that a table over cells says of one.

  Args:
    model: its name.
    task: its name.
    found: the cell.
    shuffle: of the roles, if it was made.
    tables: of `explained.tables`, if they were made.
  """
  own = found.shares
  row: Row = {
    "model": model,
    "task": task,
    "accuracy": found.accuracy,
    "pairs": own.n_valid,
    "swing": own.mean_swing,
    "significant": found.discovery.n_significant,
    "candidates": found.discovery.n_candidates,
  }
  for role in ("writer", "canceller"):
    heads = found.of_role(role)
    row |= {
      f"{role}s": len(heads),
      f"{role}_heads": " ".join(map(name_of, heads)),
    }
  for ablation, verdict in found.verdicts.items():
    for group in GROUPS:
      change = found.changes[ablation][group]
      row |= {
        f"{ablation}_{group}": change.estimate,
        f"{ablation}_{group}_low": change.low,
        f"{ablation}_{group}_high": change.high,
      }
    row |= {
      f"{ablation}_verdict": verdict.name,
      f"{ablation}_interaction": verdict.interaction,
    }
  row["doubt"] = own.doubt or ""
  if shuffle is not None:
    row |= {
      "shuffle_difference": shuffle.difference,
      "shuffle_p": shuffle.p,
      "shuffle_splits": shuffle.splits,
      "shuffle_all": shuffle.exhaustive,
    }
  return row | _explained(tables or {})


def _explained(tables) -> Row:
  """Of the tables of the mechanism, what is one number a cell."""
  row: Row = {}
  for line in tables.get("geometry", ()):
    row |= {name: line[name] for name in ("orthogonal", "downstream")}
  for line in tables.get("coverage", ()):
    row |= {
      f"top{line['top']}_{line['role']}s": line["among"],
      f"top{line['top']}_by_size_{line['role']}s": line["among_by_size"],
    }
  for line in tables.get("induction", ()):
    row |= {f"induction_{k}": line[k] for k in ("shared", "expected", "sd")}
    row["induction_p_more"] = line["p_more"]
  for line in tables.get("attention", ()):
    for group in ("writers", "cancellers"):
      row[f"attention_{line['source']}_{group}"] = line[group]
  kinds = [x for x in tables.get("sources", ()) if x["role"] == "canceller"]
  if kinds:
    row["content_cancellers"] = sum(x["kind"] == "content" for x in kinds)
  for line in tables.get("controls", ()):
    if line["groups"] in ("W and C", "largest"):
      name = line["groups"].replace(" ", "_")
      row[f"attenuation_{name}"] = line["attenuation"]
  random = [
    x["attenuation"]
    for x in tables.get("controls", ())
    if x["groups"].startswith("control")
  ]
  if random:
    row["attenuation_controls"] = float(np.mean(random))
  return row


def save_row(row: Row, folder: str | os.PathLike) -> None:
  """Writes a cell's row into its folder; numbers that are none are null."""
  plain = {
    name: None if isinstance(x, float) and not math.isfinite(x) else x
    for name, x in row.items()
  }
  with atomic(pathlib.Path(folder) / CELL) as part:
    pathlib.Path(part).write_text(json.dumps(plain, indent=1) + "\n")


def read_rows(folder: str | os.PathLike) -> list[Row]:
  """The rows of all cells in the folders of a folder.

  Raises:
    ValueError: there is none, or one that is no row.
  """
  paths = sorted(pathlib.Path(folder).glob(f"*/{CELL}"))
  check(
    bool(paths),
    "--table",
    f"no */{CELL} in {folder}",
    "the folder that holds the folders of cells",
    "measure some with --out FOLDER/NAME",
  )
  rows = []
  for path in paths:
    try:
      row = json.loads(path.read_text())
    except ValueError as error:
      fail(str(path), str(error), "the JSON of a cell", "measure it again")
    check(
      isinstance(row, dict) and {"model", "task"} <= row.keys(),
      str(path),
      "no model and task",
      "the row of a cell",
      "measure it again",
    )
    rows.append(row)
  return rows


def over_cells(rows: Sequence[Row]) -> list[Row]:
  """The rows with p-values adjusted over all cells.

  Args:
    rows: of `read_rows`.

  Returns:
    The same, in their order; `shuffle_p_holm` and `shuffle_p_bh` where there
    is a p of the sign-shuffle null.
  """
  p = [row.get("shuffle_p") for row in rows]
  p = np.array([np.nan if x is None else x for x in p], float)
  adjusted = {"holm": holm(p), "bh": benjamini_hochberg(p)}
  return [
    row
    | {
      f"shuffle_p_{name}": float(values[i])
      for name, values in adjusted.items()
      if values[i] == values[i]
    }
    for i, row in enumerate(rows)
  ]


def told(rows: Sequence[Row]) -> list[str]:
  """What all cells say together, a line each."""
  names = [row.get("zero_verdict") for row in rows]
  lines = [f"canonical in {names.count('canonical')} of {len(rows)} cells"]
  for role in ("writers", "cancellers"):
    among = sum(row.get(f"top20_by_size_{role}", 0) for row in rows)
    count = sum(
      row.get(role, 0) for row in rows if f"top20_by_size_{role}" in row
    )
    if count:
      lines.append(f"Todd's top 20 by size: {among} of {count} {role}")
  found = [
    Overlap(
      row["induction_shared"], row["induction_expected"], row["induction_sd"],
      row["induction_p_more"],
    )
    for row in rows
    if "induction_shared" in row
  ]  # fmt: skip
  if found:
    lines.append(
      f"induction heads: {sum(x.count for x in found)} shared, "
      f"{sum(x.expected for x in found):.2f} by chance; equivalence p = "
      f"{equivalence(found):.2g}"
    )
  return lines
