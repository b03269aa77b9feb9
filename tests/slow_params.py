"""Parameters of which some are for the quick tests, and all for the slow."""

from collections.abc import Iterable

import pytest


def slow_but(quick: Iterable, values: Iterable) -> list:
  """The values, all but the quick ones marked as slow; tuples are several."""
  kept = list(quick)
  return [value if value in kept else _slow(value) for value in values]


def _slow(value):
  several = value if isinstance(value, tuple) else (value,)
  return pytest.param(*several, marks=pytest.mark.slow)
