"""Which calls made a folder of results, and which makes its tables again?

A study's script leaves them in OUT/commands.json, where the report finds them.
"""

import json
import os
import pathlib
import shlex
from collections.abc import Sequence
from html import escape

from headjax.checks import check, fail
from headjax.files import write_text

NAME = "commands.json"
_FIELDS = {"measured", "tables"}


def record(
  folder: str | os.PathLike,
  script: str,
  argv: Sequence[str],
  *,
  tables: str,
  measured: bool = True,
) -> None:
  """Adds a call of a script to those that filled a folder.

  Args:
    folder: OUT of the script.
    script: such as `experiments/head_patching.py`.
    argv: its arguments.
    tables: the call that makes the tables again, from what the folder holds.
    measured: whether the call measured anything.
  """
  path = pathlib.Path(folder) / NAME
  before = read(path)["measured"] if path.is_file() else []
  call = shlex.join(["python", script, *map(str, argv)])
  calls = [*before, call] if measured and call not in before else before
  found = {"measured": calls, "tables": tables}
  write_text(path, json.dumps(found, indent=2) + "\n")


def read(path: pathlib.Path) -> dict:
  """The calls in a file.

  Raises:
    ValueError: it is not such a file.
  """
  advice = f"take {NAME} out of the folder"
  try:
    found = json.loads(path.read_text("utf-8"))
  except (UnicodeDecodeError, json.JSONDecodeError) as error:
    fail(str(path), f"an unreadable file ({error})", "commands", advice)
  good = isinstance(found, dict) and found.keys() == _FIELDS
  check(
    good
    and isinstance(found["measured"], list)
    and all(isinstance(x, str) for x in (*found["measured"], found["tables"])),
    str(path),
    "something else",
    f"the fields {' and '.join(sorted(_FIELDS))}",
    advice,
  )
  return found


def beside(path: pathlib.Path, top: pathlib.Path) -> dict | None:
  """The calls of the nearest folder above a file, up to `top`."""
  for folder in path.parents:
    if (folder / NAME).is_file():
      return read(folder / NAME)
    if folder == top:
      break
  return None


def again(text: str) -> str:
  """The line that says how a number is made again."""
  return (
    f'<p class="again"><span>Recompute</span> <code>{escape(text)}</code></p>'
  )
