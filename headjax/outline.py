"""How does a value say what it holds? Arrays by their shapes, not numbers.

A class whose values hold arrays takes `__repr__ = of_fields` for the prompt and
`_repr_html_ = table_of_fields` for notebooks.
"""

import dataclasses
import html
import textwrap
from collections.abc import Mapping
from typing import Any

_WHOLE, _FIRST = 4, 2  # entries of a short, and of a longer one, that are shown
# Notebooks put what is in a table to the right.
_LEFT = ' style="text-align:left"'


def outline(value: Any) -> str:
  """A value in a few words: an array by its type and shape.

  Args:
    value: an array (also one that is being traced), a tuple or a mapping, of
      which a long one is shown by its first entries, or anything else.

  Returns:
    For instance `float32[30, 4]`; what is no array as Python writes it, with
    six digits of a float.

  Examples:
    >>> outline((1.5, "z"))
    "(1.5, 'z')"
    >>> outline(tuple(range(30)))
    '(0, 1, ... 30 in all)'
  """
  if isinstance(value, Mapping):
    pairs = [f"{outline(key)}: {outline(value[key])}" for key in value]
    return f"{{{_few(pairs)}}}"
  if isinstance(value, tuple) and not hasattr(value, "_fields"):
    return f"({_few(list(map(outline, value)))})"
  if isinstance(value, str):
    return repr(str(value))  # one of NumPy's says so
  if isinstance(value, float):
    return repr(float(f"{value:.6g}"))
  shape, dtype = (getattr(value, name, None) for name in ("shape", "dtype"))
  if shape is None or dtype is None:
    return repr(value)
  return f"{dtype}[{', '.join(map(str, shape))}]" if shape else str(value)


def of_fields(owner: Any) -> str:
  """The `__repr__` of a dataclass or named tuple with arrays.

  Args:
    owner: whose it is; what is empty or at its default is left out.

  Returns:
    One line, or one line a field where that would be long.
  """
  found = [f"{name}={outline(value)}" for name, value in held(owner).items()]
  name, line = type(owner).__name__, ", ".join(found)
  if len(line) <= 100 and "\n" not in line:
    return f"{name}({line})"
  lines = ",\n".join(found) + ","
  return f"{name}(\n{textwrap.indent(lines, '  ')}\n)"


def table_of_fields(owner: Any) -> str:
  """The `_repr_html_` of a dataclass or named tuple: a row a field.

  Args:
    owner: whose it is; what is empty or at its default is left out.
  """
  return table(type(owner).__name__, held(owner))


def table(title: str, rows: Mapping[str, Any]) -> str:
  """What a value holds, as a notebook shows it.

  Args:
    title: above the rows.
    rows: name -> value; text stands without quotes.

  Returns:
    HTML, with every text escaped.
  """
  cells = "".join(
    f"<tr><th>{html.escape(name)}</th>"
    f"<td{_LEFT}>{html.escape(_cell(value))}</td></tr>"
    for name, value in rows.items()
  )
  head = f'<tr><th colspan="2"{_LEFT}>{html.escape(title)}</th></tr>'
  return f"<table>{head}{cells}</table>"


def held(owner: Any) -> dict[str, Any]:
  """Field -> value of a dataclass or named tuple, without what says nothing.

  Args:
    owner: whose fields; what is empty or at its default is left out.
  """
  return {
    name: value
    for name, default in _defaults(owner).items()
    if not _says_nothing(value := getattr(owner, name), default)
  }


def _defaults(owner):
  """Field -> its default, or a mark that it has none; hidden ones left out."""
  if hasattr(owner, "_fields"):
    none = dataclasses.MISSING
    return {
      name: owner._field_defaults.get(name, none) for name in owner._fields
    }
  return {f.name: f.default for f in dataclasses.fields(owner) if f.repr}


def _says_nothing(value, default):
  if value is None or (isinstance(value, tuple) and not value):
    return True
  return type(value) is type(default) and value == default


def _few(entries: list[str]) -> str:
  """The first entries, and how many there are where some are left out."""
  if len(entries) > _WHOLE:
    entries = [*entries[:_FIRST], f"... {len(entries)} in all"]
  return ", ".join(entries)


def _cell(value):
  return value if isinstance(value, str) else outline(value)
