"""In which order and colour do designs stand in the study's figures?"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Families of designs: what is learned is grey, writes that all layers share
# are blue, writes that rotate are orange, restricted readers green or, with
# rotated writes, brown; halves are violet.
GREY, BLUE, ORANGE = "#4b5563", "#1f62a8", "#cf4a26"
GREEN, BROWN, VIOLET = "#3c8d5a", "#b0832a", "#8a5fb0"
_FAMILIES = (
  ("learned", GREY),
  ("multiscreen-learned", GREY),
  ("write-common", BLUE),
  ("mlp", BLUE),
  ("value", BLUE),
  ("fixeddiag", BLUE),
  ("identity", BLUE),
  ("multiscreen-identity", BLUE),
  ("half-shared", VIOLET),
  ("write-rotated", ORANGE),
  ("write-routed", ORANGE),
  ("read-common", GREEN),
  ("all-common", GREEN),
  ("all-rotated", BROWN),
)
_STYLES = ("-", (0, (4, 1.4)), (0, (1, 1.1)), (0, (5, 1.2, 1, 1.2)))


def colour(design: str) -> str:
  """The colour of a design's family."""
  for beginning, found in _FAMILIES:
    if design.startswith(beginning):
      return found
  return GREY


def dashes(designs: Iterable[str]) -> dict[str, str | tuple]:
  """A line style for every design, another for each one of a colour."""
  found, used = {}, Counter()
  for design in ordered(designs):
    found[design] = _STYLES[used[colour(design)] % len(_STYLES)]
    used[colour(design)] += 1
  return found


def legend_width(names: Iterable[str]) -> float:
  """Inches that a legend of these names takes beside the axes."""
  return 0.85 + 0.075 * max(map(len, names), default=0)


def ordered(designs: Iterable[str]) -> list[str]:
  """The designs, families together, names in order within them."""
  beginnings = [beginning for beginning, _ in _FAMILIES]

  def place(design: str) -> tuple[int, str]:
    family = [design.startswith(b) for b in beginnings]
    return (family.index(True) if any(family) else len(family), design)

  return sorted(set(designs), key=place)


def by_design(
  rows: Sequence[Mapping[str, Any]], **where: Any
) -> dict[str, list[Mapping[str, Any]]]:
  """The rows that have some values, by design and in the designs' order."""
  kept = [r for r in rows if all(r[k] == v for k, v in where.items())]
  return {
    design: [row for row in kept if row["design"] == design]
    for design in ordered(row["design"] for row in kept)
  }


def tasks_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
  """The tasks in the rows, in the order in which they first come."""
  first = ("sva", "quote", "plural")
  there = dict.fromkeys(row["task"] for row in rows)
  return sorted(there, key=lambda t: first.index(t) if t in first else 99)
