"""How does a table of a result become one of the page? Rounded and aligned."""

import csv
import json
import pathlib
from html import escape

from headjax.checks import check, fail

# Longer tables are folded up: a page is read from above.
OPEN_ROWS = 40
_MINUS = "\u2212"
_ADVICE = "make the table again, or take the file out of the folder"

Row = list[str]


def read(path: pathlib.Path) -> tuple[Row, list[Row]] | None:
  """Columns and rows of a .csv file, or of a .json file that is one row.

  Raises:
    ValueError: it is no table. JSON that is something else gives None.
  """
  try:
    text = path.read_text("utf-8")
    if path.suffix == ".json":
      return _one_row(json.loads(text))
    lines = list(csv.reader(text.splitlines(keepends=True), strict=True))
  except (UnicodeDecodeError, csv.Error, json.JSONDecodeError) as error:
    fail(str(path), f"an unreadable file ({error})", "a table", _ADVICE)
  columns, rows = (lines[0], lines[1:]) if lines else ([], [])
  rows = [row for row in rows if row]
  for number, row in enumerate(rows, 1):
    check(
      len(row) <= len(columns),
      str(path),
      f"{len(row)} cells in row {number}",
      f"at most {len(columns)}, as many as there are columns",
      _ADVICE,
    )
  return columns, [row + [""] * (len(columns) - len(row)) for row in rows]


def _one_row(found) -> tuple[Row, list[Row]] | None:
  scalar = (str, int, float, type(None))
  if not isinstance(found, dict) or not found:
    return None
  if not all(isinstance(value, scalar) for value in found.values()):
    return None
  return list(found), [["" if v is None else str(v) for v in found.values()]]


def html(columns: Row, rows: list[Row], most_rows: int) -> str:
  """The table, without columns that are empty in every row.

  What is the same in all rows is said once, above them; of a table of one row
  every column becomes a pair of name and value.

  Args:
    columns: their names.
    rows: as wide as the columns.
    most_rows: that are shown.
  """
  kept = [i for i in range(len(columns)) if any(row[i] for row in rows)]
  if len(rows) == 1:
    return _pairs([(columns[i], rows[0][i]) for i in kept])
  same = [i for i in kept if len({row[i] for row in rows}) == 1]
  if len(same) == len(kept):
    same = []
  said = " · ".join(f"{columns[i]} {short(rows[0][i])}" for i in same)
  above = f'<p class="same">{escape(said)}</p>' if said else ""
  kept = [i for i in kept if i not in same]
  shown = rows[:most_rows]
  more = f"The first {len(shown)} of {len(rows)} rows."
  below = f'<p class="same">{more}</p>' if len(shown) < len(rows) else ""
  return above + _table(columns, shown, kept) + below


def _table(columns: Row, rows: list[Row], kept: list[int]) -> str:
  heads = "".join(
    f'<th scope="col"{_side([row[i] for row in rows])}>'
    f'<button type="button">{escape(columns[i])}</button></th>'
    for i in kept
  )
  body = "".join(
    f"<tr>{''.join(_cell(row[i]) for i in kept)}</tr>" for row in rows
  )
  return (
    '<div class="wide" role="group" aria-label="table" tabindex="0">'
    f'<table class="sortable"><thead><tr>{heads}</tr></thead>'
    f"<tbody>{body}</tbody></table></div>"
  )


def _pairs(pairs: list[tuple[str, str]]) -> str:
  found = "".join(
    f"<div><dt>{escape(name)}</dt><dd{_whole(value)}>{escape(short(value))}"
    "</dd></div>"
    for name, value in pairs
  )
  return f'<dl class="pairs">{found}</dl>'


def _cell(value: str) -> str:
  return f"<td{_side([value])}{_whole(value)}>{escape(short(value))}</td>"


def _side(values: Row) -> str:
  """Numbers stand to the right, and so does the name above them."""
  return ' class="n"' if all(is_number(value) for value in values) else ""


def _whole(value: str) -> str:
  """A number that was rounded tells all of itself in its title."""
  rounded = short(value).replace(_MINUS, "-") != value
  return f' title="{escape(value)}"' if rounded else ""


def is_number(value: str) -> bool:
  """Whether it stands for a number, or for none."""
  try:
    float(value.removesuffix("%") or 0)
  except ValueError:
    return False
  return True


def short(value: str) -> str:
  """A number with four digits and a minus sign; all else as it is."""
  if not value or not is_number(value):
    return value
  if len(value) > 6 and "." in value and not value.endswith("%"):
    value = f"{float(value):.4g}"
  return value.replace("-", _MINUS, 1) if value.startswith("-") else value
