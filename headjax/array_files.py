"""How are arrays kept in a file? By name, whole or not at all, unpickled."""

import io
import os
import pathlib
import zipfile
from collections.abc import Mapping

import numpy as np

from headjax.checks import fail
from headjax.files import atomic


def write_arrays(
  path: str | os.PathLike, arrays: Mapping[str, np.ndarray]
) -> None:
  """Writes arrays by name into one `.npz` file, whole or not at all."""
  with atomic(path) as part:
    np.savez(part, **arrays)


def read_arrays(
  path: str | os.PathLike, expected: str, remedy: str
) -> dict[str, np.ndarray] | None:
  """What `write_arrays` wrote; None where there is no file.

  Args:
    path: of the file.
    expected: what it should be, and
    remedy: what to do about a damaged one, for the message.

  Raises:
    ValueError: the file is damaged, or holds Python objects.
  """
  path = pathlib.Path(path)
  if not path.exists():
    return None
  try:
    # From memory: NumPy leaves a file open that it cannot read.
    content = io.BytesIO(path.read_bytes())
    with np.load(content, allow_pickle=False) as file:
      return dict(file)
  except (
    AttributeError, EOFError, OSError, TypeError, ValueError,
    zipfile.BadZipFile,
  ):  # fmt: skip
    fail(str(path), "unreadable file", expected, remedy)
