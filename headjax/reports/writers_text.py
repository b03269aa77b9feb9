"""What does a cell of writers and cancellers say, in a terminal? As text."""

from collections.abc import Mapping, Sequence
from typing import Any

from headjax.reports.rows import text_table
from headjax.studies.writers.cell import Cell
from headjax.studies.writers.lesions import SignShuffle
from headjax.studies.writers.released import name_of
from headjax.studies.writers.released_check import Report

Rows = Sequence[Mapping[str, Any]]


def cell_text(found: Cell) -> str:
  """The candidates, the groups and the verdicts."""
  rows, control, own = found.rows(), found.discovery, found.shares
  lines = [
    text_table(rows, rows[0]),
    "",
    f"{control.n_significant} of {control.p.size} heads significant "
    f"({control.rule} rule), {control.n_candidates} candidates; "
    f"{own.n_valid} of {own.n_pairs} pairs with a swing, on average "
    f"{own.mean_swing:.3g}; accuracy {found.accuracy:.3f}",
  ]
  if own.doubt:
    lines.append(f"no roles: {own.doubt}")
  for role in ("writer", "canceller"):
    heads = ", ".join(map(name_of, found.of_role(role)))
    lines.append(f"{role}s: {heads or 'none'}")
  for ablation, verdict in found.verdicts.items():
    changes = ", ".join(
      f"{group} {x.estimate:+.3f} [{x.low:+.3f}, {x.high:+.3f}]"
      for group, x in found.changes[ablation].items()
    )
    lines.append(f"{ablation} ablation without {changes}")
    lines.append(f"  {verdict.name}, interaction {verdict.interaction:+.3f}")
  return "\n".join(lines)


def shuffle_text(found: SignShuffle | None) -> str:
  """The sign-shuffle null, in a line."""
  if found is None:
    return "sign-shuffle: a group is empty, there is nothing to exchange"
  kind = "all" if found.exhaustive else "random"
  return (
    f"sign-shuffle: difference {found.difference:+.3f}, p = {found.p:.3g} of "
    f"{kind} {found.splits} splits"
  )


def tables_text(tables: Mapping[str, Rows], reasons: Mapping[str, str]) -> str:
  """Tables under their names, then what there is none of, and why."""
  parts = [
    f"{name}\n{text_table(rows, rows[0])}"
    for name, rows in tables.items()
    if rows
  ]
  parts += [f"{name}: left out ({why})" for name, why in reasons.items()]
  return "\n\n".join(parts)


def check_text(report: Report) -> str:
  """The differences, the mismatches and what was found in a released cell."""
  rows = [
    {
      "statistic": found.statistic,
      "numbers": found.count,
      "largest": found.largest,
      "allowed": float(found.allowed),
      "unit": found.unit or "-",
      "where": found.where,
      "wrong": found.wrong,
    }
    for found in report.comparisons
  ]
  lines = [
    text_table(rows, rows[0]),
    "",
    f"{len(report.mismatches)} labels do not follow from the numbers",
    *(f"  {line}" for line in report.mismatches),
    "",
    *report.notes,
    "",
  ]
  if report.agrees:
    lines.append(f"all {len(rows)} statistics and all labels are reproduced")
  else:
    wrong = [found.statistic for found in report.comparisons if found.wrong]
    lines.append(
      f"NOT reproduced: {', '.join(wrong) or 'no statistic'}; "
      f"{len(report.mismatches)} labels"
    )
  return "\n".join(lines) + "\n"
