"""What is left of a preparation that was killed? All of its finished shards.

While a corpus is made it lives in `<folder>.partial`, with a record of how
far it is: the documents whose tokens are safe, the shards that hold them, and
how long the validation file was then. A new attempt starts from there, and
only a finished corpus gets the folder's own name.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
from typing import Any

import numpy as np

from headjax.checks import check
from headjax.data.manifest import VALIDATION
from headjax.files import atomic
from headjax.models.tensor_files import read_json

_RECORD = "progress.json"


@dataclasses.dataclass(frozen=True)
class Progress:
  """How far the files reach.

  Attributes:
    documents: of the source, taken from its start.
    train_documents: of these, in the shards.
    validation_documents: of these, in the validation file.
    validation_tokens: in the validation file.
    shards: the finished ones, each its `file`, `tokens` and `sha256`.
  """

  documents: int = 0
  train_documents: int = 0
  validation_documents: int = 0
  validation_tokens: int = 0
  shards: tuple[dict[str, Any], ...] = ()

  @property
  def train_tokens(self) -> int:
    """Tokens of the finished shards."""
    return sum(shard["tokens"] for shard in self.shards)


class PartialFolder:
  """The folder of a corpus in the making: ids are appended to its files.

  Attributes:
    path: the folder.
    final: what it will be called.
    progress: what is safe.
    shard_tokens: in the shard that is not finished.
  """

  def __init__(
    self, folder: pathlib.Path, settings: dict[str, Any], dtype: str
  ):
    """Begins, or goes on where the last finished shard ended.

    Args:
      folder: where the corpus will be.
      settings: all that decides its content; JSON's types only.
      dtype: of the ids in the files.

    Raises:
      ValueError: the corpus is there already, or an unfinished one of other
        settings.
    """
    check(
      not os.path.lexists(folder),
      "output folder",
      folder,
      "a folder that does not exist yet",
      "choose another one, or delete it",
    )
    self.path = folder.with_name(f"{folder.name}.partial")
    self.final, self._settings, self._dtype = folder, settings, dtype
    self.progress = self._recorded()
    self._drop_unfinished()
    self._validation = open(self.path / VALIDATION, "ab")
    self._begin_shard()

  @property
  def train_tokens(self) -> int:
    """Tokens of all shards, the unfinished one included."""
    return self.progress.train_tokens + self.shard_tokens

  def add(self, train: np.ndarray, validation: np.ndarray) -> None:
    """Appends ids to the current shard and to the validation file."""
    content = train.astype(self._dtype).tobytes()
    self._shard.write(content)
    self._sha256.update(content)
    self.shard_tokens += len(train)
    self._validation.write(validation.astype(self._dtype).tobytes())

  def finish_shard(
    self, documents: int, train_documents: int, validation_documents: int
  ) -> None:
    """Makes all that was added safe, and records it.

    Args:
      documents: of the source that are in the files now, or were left out.
      train_documents: of these, in the shards.
      validation_documents: of these, in the validation file.
    """
    entry = {
      "file": self._shard_path.name,
      "tokens": self.shard_tokens,
      "sha256": self._sha256.hexdigest(),
    }
    new = (entry,) if self.shard_tokens else ()
    for file in (self._shard, self._validation):
      file.flush()
      os.fsync(file.fileno())
    self._shard.close()
    progress = Progress(
      documents,
      train_documents,
      validation_documents,
      self._validation.tell() // np.dtype(self._dtype).itemsize,
      (*self.progress.shards, *new),
    )
    self._record(progress)
    self._begin_shard()

  def give_name(self) -> None:
    """Makes the folder the corpus."""
    self.close()
    self._shard_path.unlink()  # the next shard, which is not needed
    os.rename(self.path, self.final)
    (self.final / _RECORD).unlink()

  def close(self) -> None:
    """Closes the files; without a finished shard the folder goes too."""
    self._shard.close()
    self._validation.close()
    if not self.progress.shards:
      self.discard()

  def discard(self) -> None:
    """Deletes the folder."""
    shutil.rmtree(self.path, ignore_errors=True)

  def _begin_shard(self):
    name = f"train-{len(self.progress.shards):05}.bin"
    self._shard_path = self.path / name
    self._shard = open(self._shard_path, "wb")
    self._sha256 = hashlib.sha256()
    self.shard_tokens = 0

  def _record(self, progress):
    self.progress = progress
    content = {"settings": self._settings} | dataclasses.asdict(progress)
    with atomic(self.path / _RECORD) as part:
      part.write_text(json.dumps(content), encoding="utf-8")

  def _recorded(self):
    """What an earlier attempt finished; nothing, if there was none."""
    self.path.mkdir(parents=True, exist_ok=True)
    # A hidden file is what a kill leaves of one that was being written.
    if all(file.name.startswith(".") for file in self.path.iterdir()):
      self._record(Progress())
    path = self.path / _RECORD
    record = read_json(path) if path.is_file() else {}
    check(
      record.pop("settings", None) == self._settings,
      "output folder",
      f"{self.path}, the unfinished corpus of another command",
      "one that this command began",
      "repeat the command that began it, or delete it",
    )
    return Progress(**record | {"shards": tuple(record["shards"])})

  def _drop_unfinished(self):
    """Takes back what was added after the last finished shard."""
    finished = {shard["file"] for shard in self.progress.shards}
    for file in [*self.path.glob("*.bin"), *self.path.glob(".*.part.*")]:
      if file.name not in finished | {VALIDATION}:
        file.unlink()
    with open(self.path / VALIDATION, "ab") as file:
      item = np.dtype(self._dtype).itemsize
      file.truncate(self.progress.validation_tokens * item)
