"""How does any result folder become one page that needs no network?

What is drawn follows from the names of dimensions alone: an array with heads as
axes becomes a heat map, one with pairs of heads or with attention patterns is
shown beside each head, a .csv file becomes a table, a .png file a figure.
"""

import base64
import hashlib
import importlib.resources
import itertools
import os
import string
from collections.abc import Iterable, Sequence
from html import escape

from plotly.offline import get_plotlyjs

from headjax.files import atomic
from headjax.reports.colours import COLOURS
from headjax.reports.html import blocks, contents, folder, provenance
from headjax.reports.html.budget import Budget, as_json
from headjax.reports.html.source import Source

MOST_BYTES = 8_000_000
SCRIPTS = (
  "unpack", "text", "style", "heatmap", "examples", "attention", "others",
  "tables", "keyboard", "paper", "main",
)  # fmt: skip
_AROUND = 20_000  # bytes of what is said around the parts
_TEMPLATES = importlib.resources.files(__package__) / "templates"


def write_page(
  folders: Sequence[str | os.PathLike],
  out: str | os.PathLike,
  *,
  most_bytes: int = MOST_BYTES,
) -> None:
  """Writes one page about all results in some folders, whole or not at all.

  Args:
    folders: that scripts wrote to; searched with all that is in them.
    out: the .html file; one that exists is replaced.
    most_bytes: of the page, about. Parts that do not fit are left out, and the
      page says which.

  Raises:
    ValueError: a folder is missing or holds no result, or a file is damaged.
    OSError: the page cannot be written.
  """
  text = page(folders, most_bytes=most_bytes)
  with atomic(out) as part:
    part.write_text(text, "utf-8")


def page(
  folders: Sequence[str | os.PathLike], *, most_bytes: int = MOST_BYTES
) -> str:
  """The page of `write_page`, as text."""
  files = folder.find(folders)
  skeleton = _template("page.html")
  parts = {
    "css": _template("page.css"),
    "plotly": f"\n{get_plotlyjs()}\n",
    "scripts": _scripts(),
  }
  fixed = sum(len(text.encode()) for text in (skeleton, *parts.values()))
  budget = Budget(most_bytes - fixed - _AROUND)
  figures = blocks.all_figures(files[".png"], budget)
  tables = blocks.all_tables(files[".csv"] + files[".json"], budget)
  found = contents.read(files[".nc"], budget)
  parts |= {
    "allowed": " ".join(_hash(parts[x]) for x in ("plotly", "scripts")),
    "title": escape(_title(folders)),
    "about": escape(_about(found.sources)),
    "tables": tables,
    "figures": figures,
    "provenance": provenance.html(found.sources, budget)
    + blocks.all_calls(itertools.chain(*files.values())),
  }
  contents.add_maps(found, budget)
  contents.add_large(found, budget)
  parts["missing"] = budget.html()
  parts["data"] = as_json(found.data | {"colours": _colours()})
  return string.Template(skeleton).substitute(parts)


def _template(name: str) -> str:
  return (_TEMPLATES / name).read_text("utf-8")


def _scripts() -> str:
  """What the page runs, in a scope of its own."""
  parts = (_template(f"{name}.js") for name in SCRIPTS)
  return '\n(() => {\n"use strict";\n' + "\n".join(parts) + "\n})();\n"


def _hash(script: str) -> str:
  """How the page's policy names a script that may run, and no other.

  Browsers take it of what they read, where every line ends with one sign.
  """
  read = script.replace("\r\n", "\n").replace("\r", "\n")
  digest = hashlib.sha256(read.encode()).digest()
  return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _title(folders: Sequence[str | os.PathLike]) -> str:
  return ", ".join(os.path.basename(os.path.abspath(x)) for x in folders)


def _about(sources: Sequence[Source]) -> str:
  """Models, tasks and days, in a line."""
  days = sorted(str(x.attrs.get("created_utc", ""))[:10] for x in sources)
  days = list(dict.fromkeys(day for day in days if day))
  said = [
    _few(x.model for x in sources),
    _few(x.task for x in sources),
    f"measured {' to '.join(dict.fromkeys((days[0], days[-1])))}"
    if days
    else "",
  ]
  return " · ".join(text for text in said if text)


def _few(names: Iterable[str]) -> str:
  """Different names, the first six of them."""
  names = list(dict.fromkeys(name for name in names if name))
  more = f" and {len(names) - 6} more" if len(names) > 6 else ""
  return ", ".join(names[:6]) + more


def _colours() -> list[list]:
  """The colour scale of all figures, as plotly wants it."""
  places = [i / 24 for i in range(25)]
  return [
    [x, "#" + "".join(f"{round(255 * c):02x}" for c in COLOURS(x)[:3])]
    for x in places
  ]
