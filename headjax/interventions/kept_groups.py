"""Which groups were ablated before somebody stopped the sweep? Files of them.

A file holds the groups that are done of one chunk of rows, with their values.
It is written anew, whole or not at all, when some seconds of work are not in it
yet. Its name tells with what they were measured, so that nothing is ever taken
for the result of other weights, rows or settings.
"""

import hashlib
import json
import os
import pathlib
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from headjax.array_files import read_arrays, write_arrays
from headjax.checks import check

SECONDS = 5.0  # of work that may be lost


class KeptGroups:
  """The groups of one chunk of rows that are done."""

  def __init__(
    self,
    folder: str | os.PathLike | None,
    measured_with: Mapping[str, Any],
    *,
    seconds: float = SECONDS,
  ):
    """Reads what is there.

    Args:
      folder: of the files; None: nothing is read or written.
      measured_with: all that the values depend on, beside the group.
      seconds: of work after which a file is written anew.

    Raises:
      ValueError: the file is damaged.
    """
    text = json.dumps(dict(measured_with), sort_keys=True)
    name = f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.npz"
    self._path = None if folder is None else pathlib.Path(folder) / name
    self._seconds, self._written = seconds, time.monotonic()
    self._values = self._read()
    self._n_written = len(self._values)

  def get(self, group: np.ndarray) -> np.ndarray | None:
    """The values `[measure, row]` without a group, if that is done.

    Args:
      group: `[layer, head]` bool.
    """
    return self._values.get(group.tobytes())

  def add(self, group: np.ndarray, values: np.ndarray) -> None:
    """One more group is done; now and then they are written."""
    self._values[group.tobytes()] = values
    if time.monotonic() - self._written >= self._seconds:
      self.write()

  def write(self) -> None:
    """Writes all that is not written yet."""
    self._written = time.monotonic()
    if self._path is None or len(self._values) == self._n_written:
      return
    groups = np.array([np.frombuffer(key, bool) for key in self._values])
    values = np.stack([*self._values.values()])
    write_arrays(self._path, {"groups": groups, "values": values})
    self._n_written = len(self._values)

  def _read(self) -> dict[bytes, np.ndarray]:
    if self._path is None:
      return {}
    said = (
      "groups that an earlier call kept",
      "remove it: they are measured again",
    )
    file = read_arrays(self._path, *said)
    if file is None:
      return {}
    names = sorted(file)
    check(names == ["groups", "values"], self._path, ", ".join(names), *said)
    pairs = zip(file["groups"], file["values"], strict=True)
    return {group.tobytes(): values for group, values in pairs}
