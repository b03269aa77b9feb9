"""What does a config.json say? Its fields, with their types checked."""

import pathlib
from typing import Any

from headjax.checks import check
from headjax.models import tensor_files

_REQUIRED = object()
# Numbers of a config have to fit the types that they are used in.
_LIMITS = {int: 2**31, float: 2**127}


class Fields:
  """The fields of a config.json, or of an object in it."""

  def __init__(self, source: str, content: dict[str, Any], inside: str = ""):
    """Takes a parsed object.

    Args:
      source: the file, for messages.
      content: field -> value.
      inside: which object of the file it is, with a dot at the end.
    """
    self.source, self.content, self.inside = source, content, inside

  @classmethod
  def of_file(cls, path: pathlib.Path) -> "Fields":
    """Reads a file."""
    return cls(str(path), tensor_files.read_json(path))

  def label(self, name: str) -> str:
    """What a message calls a field."""
    return f"{self.source}: {self.inside}{name}"

  def get(self, name: str, kind: type, default: Any = _REQUIRED) -> Any:
    """A field; null and absent are the same, as mostly in transformers."""
    value = self.content.get(name)
    if value is None and default is not _REQUIRED:
      return default
    right = type(value) is kind or (kind is float and type(value) is int)
    if kind in _LIMITS:
      right = right and 0 < value < _LIMITS[kind]
    expected = kind.__name__
    if kind in _LIMITS:
      expected = f"a positive {expected} below {_LIMITS[kind]:.3g}"
    check(
      right,
      self.label(name),
      repr(value)[:60],
      expected,
      "correct the config",
    )
    return kind(value)

  def nullable(self, name: str, kind: type, default: Any) -> Any:
    """A field whose null is a value, None, and not the default."""
    if name in self.content and self.content[name] is None:
      return None
    return self.get(name, kind, default)

  def choice(self, name: str, choices: dict[str, Any], default: str) -> Any:
    """What one of several words stands for."""
    word = self.get(name, str, default)
    check(
      word in choices,
      self.label(name),
      repr(word),
      "one of " + ", ".join(choices),
      "this variant of the architecture is not supported",
    )
    return choices[word]

  def inner(self, name: str) -> "Fields":
    """The fields of an object; none where it is null or absent."""
    content = self.get(name, dict, {})
    return Fields(self.source, content, f"{self.inside}{name}.")

  def require(self, name: str, value: Any) -> None:
    """Fails unless a field that changes the forward is absent or `value`."""
    check(
      self.content.get(name, value) in (value, None),
      self.label(name),
      repr(self.content.get(name))[:60],
      repr(value),
      "this variant of the architecture is not supported",
    )
