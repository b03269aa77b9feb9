"""Which tables, figures and calls are on the page? Those of the folder."""

import pathlib
from collections.abc import Iterable, Sequence
from html import escape

from headjax.reports.html import commands, pictures, tables
from headjax.reports.html.budget import Budget
from headjax.reports.html.folder import File

ROWS = (200, 50, 15)


def all_tables(files: Sequence[File], budget: Budget) -> str:
  """Every table that has rows, long ones folded up, many ones with few rows."""
  read = ((file, tables.read(file.path)) for file in files)
  found = [(file, *table) for file, table in read if table and table[1]]
  for most in ROWS:
    made = [tables.html(*table, most) for _, *table in found]
    if sum(len(text.encode()) for text in made) <= budget.room("tables"):
      break
  kept = (budget.take("tables", lambda text=text: text) for text in made)
  return "".join(
    _table(file, rows, text)
    for (file, _, rows), text in zip(found, kept, strict=True)
    if text
  )


def _table(file: File, rows: list, made: str) -> str:
  line = commands.again(file.calls["tables"]) if file.calls else ""
  n = len(rows)
  state = " open" if n <= tables.OPEN_ROWS else ""
  return (
    f'<details class="table"{state}><summary><h3>{escape(_short(file))}</h3> '
    f"<span>{n} {'row' if n == 1 else 'rows'}</span></summary>"
    f"{made}{line}</details>"
  )


def _short(file: File) -> str:
  """The name without what all names share: the folder `tables`, the suffix."""
  path = pathlib.PurePosixPath(file.name).with_suffix("")
  return " / ".join(part for part in path.parts if part != "tables")


def all_figures(files: Sequence[File], budget: Budget) -> str:
  """Every figure that fits."""
  made = (
    budget.take("figures", lambda x=file: pictures.picture(x.path, x.name))
    for file in files
  )
  return "".join(part for part in made if part)


def all_calls(files: Iterable[File]) -> str:
  """The calls that measured all this, in their order."""
  calls = dict.fromkeys(
    call for file in files if file.calls for call in file.calls["measured"]
  )
  if not calls:
    return ""
  lines = "".join(f"<li><code>{escape(call)}</code></li>" for call in calls)
  return f'<h3>Measured with</h3><ul class="calls">{lines}</ul>'
