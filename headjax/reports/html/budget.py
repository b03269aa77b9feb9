"""What fits on a page? The small parts first, and a list of what does not."""

import json
from collections import Counter
from collections.abc import Callable
from html import escape
from math import isfinite
from typing import Any

# The most that all parts of a kind may take of the page, so that the results of
# many models leave room for the others.
SHARES = {"figures": 0.4, "tables": 0.3, "provenance of files": 0.1}


class Budget:
  """Bytes that are left, and what was left out for the want of them."""

  def __init__(self, n_bytes: int):
    """Begins with all bytes, which can be none."""
    self.left = n_bytes
    self._shares = {kind: int(s * n_bytes) for kind, s in SHARES.items()}
    self._closed: set[str] = set()
    self._missing: Counter[str] = Counter()

  def room(self, kind: str) -> int:
    """Bytes that parts of a kind may still take."""
    return min(self.left, self._shares.get(kind, self.left))

  def take(self, kind: str, make: Callable[[], Any]) -> Any | None:
    """Makes a part and keeps it if it fits.

    Args:
      kind: what the list of left-out parts calls it. After one of a kind did
        not fit, the others are not made.
      make: gives text, or what JSON can hold.

    Returns:
      The part, or None.
    """
    if kind not in self._closed:
      part = make()
      size = len((part if isinstance(part, str) else as_json(part)).encode())
      if size <= self.room(kind):
        self.left -= size
        if kind in self._shares:
          self._shares[kind] -= size
        return part
      self._closed.add(kind)
    self._missing[kind] += 1
    return None

  def html(self) -> str:
    """What was left out, or nothing."""
    if not self._missing:
      return ""
    lines = "".join(
      f"<li>{escape(kind)}: {count}</li>"
      for kind, count in self._missing.items()
    )
    return (
      "<p>To keep the page small these parts are not on it. The files have"
      f" them, and a page of fewer results may.</p><ul>{lines}</ul>"
    )


def as_json(value: Any) -> str:
  """Compact JSON for a script element; what is not finite becomes null."""
  text = json.dumps(
    _finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False
  )
  return text.replace("<", "\\u003c")


def _finite(value: Any) -> Any:
  if isinstance(value, dict):
    return {key: _finite(item) for key, item in value.items()}
  if isinstance(value, list | tuple):
    return [_finite(item) for item in value]
  return None if isinstance(value, float) and not isfinite(value) else value
