"""How does a value with arrays say what it holds? By shapes, not by numbers."""

import dataclasses
from typing import Any


def outline(value: Any) -> str:
  """A value in a few words: an array by its type and shape.

  Args:
    value: an array (also one that is being traced), a tuple, or anything else.

  Returns:
    For instance `float32[30, 4]`; what is no array as Python writes it.

  Example:
    >>> outline((1.5, "z"))
    "(1.5, 'z')"
  """
  if isinstance(value, tuple) and not hasattr(value, "_fields"):
    return f"({', '.join(map(outline, value))})"
  shape, dtype = (getattr(value, name, None) for name in ("shape", "dtype"))
  if shape is None or dtype is None or shape == ():
    return repr(value)
  return f"{dtype}[{', '.join(map(str, shape))}]"


def of_fields(owner: Any) -> str:
  """The `__repr__` of a dataclass with arrays; what is empty is left out.

  Args:
    owner: a dataclass; set it as `__repr__` in the body of the class.

  Returns:
    One line, or one line a field where that would be long.
  """
  found = [
    f"{field.name}={outline(getattr(owner, field.name))}"
    for field in dataclasses.fields(owner)
    if not _is_empty(getattr(owner, field.name))
  ]
  name, line = type(owner).__name__, ", ".join(found)
  if len(line) <= 100:
    return f"{name}({line})"
  return f"{name}(\n  " + ",\n  ".join(found) + ",\n)"


def _is_empty(value):
  return value is None or (isinstance(value, tuple) and not value)
