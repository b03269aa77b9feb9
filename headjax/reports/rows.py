"""How do the study's tables get onto the disk? As CSV, and as text."""

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headjax.files import atomic

Rows = Sequence[Mapping[str, Any]]


def save_rows(rows: Rows, path: str | os.PathLike) -> None:
  """Writes rows as CSV; a column that a row lacks stays empty in it.

  Args:
    rows: labelled values; numbers are written with six digits.
    path: of the file.
  """
  columns = list(dict.fromkeys(name for row in rows for name in row))
  with atomic(path) as part, open(part, "w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
      writer.writerow(cell(row.get(name)) for name in columns)


def cell(value: Any) -> str:
  """A value as text: numbers with six digits, None and NaN as nothing."""
  if value is None or value != value:
    return ""
  return f"{value:.6g}" if isinstance(value, float) else str(value)


def text_table(rows: Rows, columns: Iterable[str]) -> str:
  """Some columns of some rows, aligned, numbers with three digits."""
  columns = list(columns)
  lines = [columns]
  for row in rows:
    lines.append([_short(row.get(name)) for name in columns])
  widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
  return "\n".join(
    "  ".join(map(str.ljust, line, widths)).rstrip() for line in lines
  )


def _short(value: Any) -> str:
  if value is None or value != value:
    return "-"
  return f"{value:.3g}" if isinstance(value, float) else str(value)
