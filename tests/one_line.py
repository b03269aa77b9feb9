"""The form of every refusal: one line, which names what is wrong."""

import contextlib
import re

import pytest


@contextlib.contextmanager
def refusal(*parts: str):
  """Expects a ValueError of one line that contains all of `parts`."""
  with pytest.raises(ValueError, match=re.escape(parts[0])) as caught:
    yield
  message = str(caught.value)
  assert "\n" not in message
  for part in parts:
    assert part in message, message
