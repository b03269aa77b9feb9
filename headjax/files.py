"""How does a file get onto the disk? Whole, or not at all."""

import contextlib
import os
import pathlib
from collections.abc import Iterator

from etils import epath


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


def is_remote(path: epath.PathLike) -> bool:
  """Whether a path is in a store such as `gs://`, and not on a disk."""
  return "://" in str(path)


def absolute(path: epath.PathLike) -> epath.Path:
  """The whole path, without dots, which checkpoints need."""
  path = epath.Path(path)
  return path if is_remote(path) else path.resolve()


def write_text(path: epath.PathLike, text: str) -> None:
  """Writes a text file, whole or not at all, on a disk or in a store."""
  path = epath.Path(path)
  if is_remote(path):  # a store shows no file before it is complete
    path.write_text(text)
    return
  with atomic(path) as part:
    part.write_text(text)
