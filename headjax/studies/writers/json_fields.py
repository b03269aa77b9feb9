"""Is a JSON file what it should be? Values taken out by type, or refused.

A refusal names the file and the place in it, such as
`discovery[3].shuf_dlas[2]`.
"""

import dataclasses
import json
import math
import os
import pathlib
from typing import Any, NoReturn

import numpy as np

from headjax.checks import check, fail

_FIX = "take the file as it was released"


@dataclasses.dataclass(frozen=True)
class Field:
  """A value of a JSON file and its place.

  Attributes:
    value: what `json` made of it.
    file: that it stands in.
    path: where in that file, "" for all of it.
  """

  value: Any
  file: str
  path: str = ""

  @property
  def place(self) -> str:
    """File and path inside it, for refusals."""
    return f"{self.file}: {self.path}" if self.path else self.file

  def __getitem__(self, name: str) -> "Field":
    """A member of an object."""
    found = self.members()
    check(
      name in found,
      self.place,
      f"no field {name!r}",
      "an object that has it",
      _FIX,
    )
    return found[name]

  def __contains__(self, name: str) -> bool:
    return name in self.members()

  def members(self) -> dict[str, "Field"]:
    """All members of an object, by name."""
    self._expect(isinstance(self.value, dict), "an object")
    start = f"{self.path}." if self.path else ""
    return {
      name: Field(value, self.file, start + name)
      for name, value in self.value.items()
    }

  def items(self, *, least: int = 0) -> list["Field"]:
    """The items of a list that has at least so many."""
    self._expect(isinstance(self.value, list), "a list")
    self._expect(len(self.value) >= least, f"a list of {least} or more")
    return [
      Field(value, self.file, f"{self.path}[{i}]")
      for i, value in enumerate(self.value)
    ]

  def number(self) -> float:
    """A finite number."""
    is_number = isinstance(self.value, int | float) and not isinstance(
      self.value, bool
    )
    self._expect(is_number, "a number")
    try:
      value = float(self.value)
    except OverflowError:
      value = math.inf
    self._expect(math.isfinite(value), "a finite number")
    return value

  def integer(self, *, least: int, most: int = 10**6) -> int:
    """A whole number in a range."""
    whole = isinstance(self.value, int) and not isinstance(self.value, bool)
    self._expect(
      whole and least <= self.value <= most, f"an integer, {least} to {most}"
    )
    return self.value

  def flag(self) -> bool:
    """True or false."""
    self._expect(isinstance(self.value, bool), "true or false")
    return self.value

  def text(self) -> str:
    """A string."""
    self._expect(isinstance(self.value, str), "text")
    return self.value

  def numbers(self, n: int | None = None) -> np.ndarray:
    """`[item]` finite numbers; of a given length, or of any."""
    items = self.items()
    self._expect(
      n is None or len(items) == n, f"a list of {n} numbers, not {len(items)}"
    )
    return np.array([item.number() for item in items])

  def _expect(self, holds: bool, expected: str) -> None:
    """Fails, with the value as far as one line can hold it."""
    if not holds:
      shown = f"{self.value!a}"
      if isinstance(self.value, dict | list):
        shown = f"{type(self.value).__name__} of {len(self.value)}"
      fail(self.place, f"{shown:.40}", expected, _FIX)


def read_json(path: str | os.PathLike) -> Field:
  """Reads a JSON file that has no NaN, no infinity and no name twice.

  Args:
    path: of the file.

  Returns:
    The outermost value.

  Raises:
    ValueError: no such file, or no such JSON.
  """
  path = pathlib.Path(path)
  try:
    text = path.read_text(encoding="utf-8")
    value = json.loads(
      text, parse_constant=_no_constant, object_pairs_hook=_no_name_twice
    )
  except (OSError, ValueError, RecursionError) as error:
    fail(path, error, "a readable JSON file", _FIX)
  return Field(value, str(path))


def _no_constant(name: str) -> NoReturn:
  raise ValueError(f"the number {name}")


def _no_name_twice(members):
  found = dict(members)
  if len(found) < len(members):
    names = [name for name, _ in members]
    twice = next(name for name in names if names.count(name) > 1)
    raise ValueError(f"an object with two fields {twice!a:.40}")
  return found
