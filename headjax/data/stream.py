"""Which words go into which prompt? Draws that are pure functions of labels.

A draw is the SHA-256 of its labels, the last of which count upwards: no state,
no seed, the same numbers on every machine and with every library version.
"""

import hashlib
import json
from collections.abc import Sequence


def draw(below: int, *labels: str | int) -> int:
  """An integer in [0, below), uniform over labels; the bias is under 1e-15.

  Args:
    below: number of outcomes, at most 10,000.
    labels: what the draw is for, and the count within it.
  """
  return _hash(labels) % below


def shuffled(items: Sequence, *labels: str | int) -> list:
  """The items in an order that every item's own hash decides.

  Leaving items out never changes the order of the others, so tokenizers that
  keep different words still mostly agree on them.

  Args:
    items: distinct strings, or tuples of strings.
    labels: what the order is for.
  """
  return sorted(items, key=lambda item: _hash((*labels, item)))


def _hash(labels):
  """The first 64 bits of the hash of labels, as an integer."""
  text = json.dumps(labels)
  return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
