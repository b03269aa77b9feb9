"""Parameters of which some are for the quick tests, and all for the slow."""

from collections.abc import Iterable

import pytest


def slow_but(quick: Iterable, values: Iterable) -> list:
  """The values, all but the quick ones marked as slow."""
  kept = list(quick)
  return [
    value if value in kept else pytest.param(value, marks=pytest.mark.slow)
    for value in values
  ]
