"""How do two runs not share a folder? The first one holds it, or the last."""

import fcntl
import json
import os
import socket
import uuid
from typing import Self

from etils import epath

from headjax.checks import fail
from headjax.files import is_remote, write_text

_NAME = "run.lock"


class Lock:
  """Holds a run's folder while the `with` block runs.

  On a disk the operating system keeps the lock: a second run is refused, and
  the lock goes with the process that held it, however that ends. A store has
  no locks: there the folder belongs to the run that began last, and an earlier
  one stops at its next `check`.
  """

  def __init__(self, folder: epath.PathLike):
    """Takes nothing yet; `with` does."""
    self._path = epath.Path(folder) / _NAME
    self._owner = {
      "host": socket.gethostname(),
      "pid": os.getpid(),
      "id": uuid.uuid4().hex,
    }
    self._file = None

  def __enter__(self) -> Self:
    """Takes the lock.

    Raises:
      ValueError: another run holds it.
    """
    text = json.dumps(self._owner)
    if is_remote(self._path):
      write_text(self._path, text)
      return self
    self._path.parent.mkdir(parents=True, exist_ok=True)
    self._file = open(self._path, "a+")
    try:
      fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      self._file.seek(0)
      holder = self._file.read()
      self._file.close()
      self._refuse(holder)
    self._file.truncate(0)
    self._file.write(text)
    self._file.flush()
    return self

  def __exit__(self, *exc) -> None:
    """Gives it back; the file stays."""
    if self._file is not None:
      self._file.close()

  def check(self) -> None:
    """Fails if the folder belongs to another run by now."""
    if is_remote(self._path):
      holder = self._path.read_text()
      if json.loads(holder)["id"] != self._owner["id"]:
        self._refuse(holder)

  def _refuse(self, holder: str):
    fail(
      f"workdir {self._path.parent}",
      f"a folder that another run holds ({holder})",
      "one run a folder",
      "wait for it, stop it, or choose another --workdir",
    )
