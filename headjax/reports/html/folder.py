"""Which files of a result folder does the page show?"""

import dataclasses
import os
import pathlib
from collections.abc import Iterator, Sequence

from headjax.checks import check
from headjax.reports.html import commands

SUFFIXES = (".nc", ".csv", ".json", ".png")


@dataclasses.dataclass(frozen=True)
class File:
  """A file to show.

  Attributes:
    path: as it is opened.
    name: as it is shown: from its folder on, which is named if it is one of
      several.
    calls: what made it, from `commands.json`, or None.
  """

  path: pathlib.Path
  name: str
  calls: dict | None


def find(folders: Sequence[str | os.PathLike]) -> dict[str, list[File]]:
  """The files of all folders, by suffix.

  Raises:
    ValueError: a folder is missing, is named twice or holds no result.
  """
  tops = [pathlib.Path(folder) for folder in folders]
  called = _called(tops)
  found: dict[str, list[File]] = {suffix: [] for suffix in SUFFIXES}
  for top in tops:
    check(
      top.is_dir(), "result", str(top), "a folder of results",
      "name the folder that a script wrote to (--out)",
    )  # fmt: skip
    check(
      [t.resolve() for t in tops].count(top.resolve()) == 1, "result",
      f"{top} twice", "different folders", "name each folder once",
    )  # fmt: skip
    before = sum(map(len, found.values()))
    for path in _files(top):
      name = path.relative_to(top).as_posix()
      name = name if len(tops) == 1 else f"{called[top]}/{name}"
      found[path.suffix].append(File(path, name, commands.beside(path, top)))
    check(
      sum(map(len, found.values())) > before, "result",
      f"{top}, without a .nc, .csv or .png file", "a folder of results",
      "name the folder that a script wrote to (--out)",
    )  # fmt: skip
  return found


def _called(tops: Sequence[pathlib.Path]) -> dict[pathlib.Path, str]:
  """Each by its last name, or as it was given where two have one."""
  last = [top.resolve().name for top in tops]
  return {
    top: name if last.count(name) == 1 else top.as_posix()
    for top, name in zip(tops, last, strict=True)
  }


def _files(top: pathlib.Path) -> Iterator[pathlib.Path]:
  """Files to show, in order; hidden ones are parts of files, or not ours."""
  for path in sorted(top.rglob("*")):
    inside = path.relative_to(top).parts
    hidden = any(part.startswith(".") for part in inside)
    if path.suffix in SUFFIXES and not hidden and path.is_file():
      if path.name != commands.NAME:
        yield path
