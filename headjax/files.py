"""How does a file get onto the disk? Whole, or not at all."""

import contextlib
import os
import pathlib
from collections.abc import Iterator


@contextlib.contextmanager
def atomic(path: str | os.PathLike) -> Iterator[pathlib.Path]:
  """Gives a temporary path that takes the place of `path` on success.

  The folder is made when it is missing. After an error `path` is what it was
  before, and the temporary file is gone.

  Args:
    path: the file to write; its suffix is also that of the temporary file.

  Yields:
    A path in the same folder, for the block to write to.
  """
  path = pathlib.Path(path)
  path.parent.mkdir(parents=True, exist_ok=True)
  part = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
  try:
    yield part
    os.replace(part, path)
  finally:
    part.unlink(missing_ok=True)
