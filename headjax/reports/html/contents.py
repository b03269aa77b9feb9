"""What of the measurements is on the page? First what is small of all of them.

Large parts follow as long as there is room: attention patterns, then single
examples, then pairs of heads. A file is in memory only while it is read.
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

import xarray as xr

from headjax import results
from headjax.reports.html import heads, linked, maps
from headjax.reports.html.budget import Budget
from headjax.reports.html.folder import File
from headjax.reports.html.source import Source

PATTERN, EXAMPLE, PAIR = "patterns", "single examples", "pairs of heads"
_ORDER = (PATTERN, EXAMPLE, PAIR)


@dataclasses.dataclass
class Contents:
  """What the scripts of the page draw.

  Attributes:
    sources: the files.
    drawn: source and array of every heat map, whether it fits or not, and
      whether there are single examples behind it.
    maps: one entry a heat map that fits.
    patterns: one entry an array of attention patterns.
    pairs: one entry an array of numbers of pairs of heads.
    labels: digest of the prompts -> name -> one label an example.
    large: kind, source and array of each large part, and its map.
  """

  sources: list[Source] = dataclasses.field(default_factory=list)
  drawn: list[tuple[Source, str, bool]] = dataclasses.field(
    default_factory=list
  )
  maps: list[dict] = dataclasses.field(default_factory=list)
  patterns: list[dict] = dataclasses.field(default_factory=list)
  pairs: list[dict] = dataclasses.field(default_factory=list)
  labels: dict[str, dict] = dataclasses.field(default_factory=dict)
  large: list[tuple[str, Source, str, Any]] = dataclasses.field(
    default_factory=list
  )

  @property
  def data(self) -> dict[str, Any]:
    """What JSON takes of it."""
    names = ("maps", "patterns", "pairs", "labels")
    return {name: getattr(self, name) for name in names}


def read(files: Sequence[File], budget: Budget) -> Contents:
  """The labels of all files, and lists of what is to be drawn.

  Raises:
    ValueError: a file is damaged, or no result.
  """
  found = Contents()
  for file in files:
    data = results.load(file.path)
    source = Source(file.path, file.name, data.attrs)
    found.sources.append(source)
    for name, array in heads.placed(data).items():
      _add(found, source, name, array)
    _add_labels(found, source, data, budget)
  return found


def add_maps(found: Contents, budget: Budget) -> None:
  """The maps that fit: of all models, and those with single examples first."""
  first: dict[tuple[str, str], int] = {}
  for source, name, _ in found.drawn:
    first.setdefault((source.part, name), len(first))

  def rank(drawn):
    source, name, has_examples = drawn
    return not has_examples, first[source.part, name]

  for source, name, has_examples in sorted(found.drawn, key=rank):
    entry = budget.take("heat maps", lambda x=(source, name): _map(*x))
    if entry is None:
      continue
    found.maps.append(entry)
    if has_examples:
      found.large.append((EXAMPLE, source, name, entry))
  _tell_apart(found.maps)


def _add(found: Contents, source: Source, name: str, array) -> None:
  if heads.is_attention(array):
    found.large.append((PATTERN, source, name, None))
    return
  if heads.is_pairs(array):
    found.large.append((PAIR, source, name, None))
    return
  # Means of edges are an overview, and come after what was measured of heads.
  single = heads.EXAMPLE in array.dims and "grouped" not in array.attrs
  found.drawn.append((source, name, single))


def _add_labels(found, source: Source, data: xr.Dataset, budget) -> None:
  """Labels of the same prompts come together from several files."""
  labels = linked.example_labels(data)
  known = found.labels.setdefault(source.prompts, {})
  new = {name: row for name, row in labels.items() if name not in known}
  if new:
    known |= budget.take("labels of examples", lambda: new) or {}


def add_large(found: Contents, budget: Budget) -> None:
  """Adds the large parts that fit, the most telling kind first."""
  for wanted in _ORDER:
    for kind, source, name, entry in found.large:
      if kind != wanted:
        continue
      part = budget.take(
        f"{kind}, {name}", lambda x=(kind, source, name): _part(*x)
      )
      if part is None:
        continue
      if kind == EXAMPLE:
        entry["examples"] = part
      else:
        (found.patterns if kind == PATTERN else found.pairs).append(part)
  _tell_apart(found.pairs)


def _map(source: Source, name: str) -> dict:
  array = heads.placed(results.load(source.path))[name]
  return maps.head_map(source, name, array)


def _part(kind: str, source: Source, name: str) -> dict:
  array = heads.placed(results.load(source.path))[name]
  if kind == EXAMPLE:
    return linked.example_values(array)
  make = linked.pattern_values if kind == PATTERN else linked.pair_values
  return make(source, name, array)


def _tell_apart(entries: list[dict]) -> None:
  """Names the files of quantities that would look the same in a switch."""

  def key(entry):
    return tuple(entry[name] for name in ("model", "task", "quantity"))

  count = Counter(map(key, entries))
  for entry in [entry for entry in entries if count[key(entry)] > 1]:
    place = entry["file"].removesuffix(".nc")
    entry["quantity"] = f"{place}: {entry['array']}"
