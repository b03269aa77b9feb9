"""Which tokens does training read? Sequences of a prepared corpus, by index.

The files are mapped into memory, so a corpus may be larger than that, and a
batch costs as many small copies as it has rows.
"""

import dataclasses
import functools
import hashlib
import os
import pathlib

import numpy as np

from headjax.checks import check, check_choice
from headjax.data import windows
from headjax.data.manifest import TOKENIZER, Manifest, read_manifest
from headjax.models import tokenizers
from headjax.models.tokenizers import Tokenizer


@dataclasses.dataclass(frozen=True, eq=False)
class Corpus:
  """A prepared corpus; sequences are pure functions of seed and index.

  Attributes:
    folder: where it is.
    manifest: what it says of itself.
    sampling: "replacement": windows drawn uniformly; "once": every target once,
      in windows that follow each other in a drawn order.
  """

  folder: pathlib.Path
  manifest: Manifest
  sampling: str

  @property
  def name(self) -> str:
    """What to call it."""
    return self.manifest.name

  @property
  def d_vocab(self) -> int:
    """Number of token ids."""
    return self.manifest.d_vocab

  @property
  def digest(self) -> str:
    """The sha256, in hex, of its ids and vocabulary."""
    return self.manifest.digest

  @functools.cached_property
  def tokenizer(self) -> Tokenizer:
    """What made its ids, and reads them."""
    read = tokenizers.from_file(self.folder / TOKENIZER)
    stated = self.manifest.tokenizer
    return Tokenizer(read.backend, stated["name"], stated.get("bos"))

  def sequences(
    self, seed: int, indices: np.ndarray, length: int
  ) -> np.ndarray:
    """Sequences to train on.

    Args:
      seed: of the draws; any integer.
      indices: `[sequence]` integers from 0: step * batch + row.
      length: tokens of a sequence, targets included: context plus 1.

    Returns:
      `[sequence, pos]` int32.
    """
    total = self.manifest.train_tokens
    first = windows.starts(self.sampling, seed, indices, total, length)
    return _copied(self._train, first, length)

  def validation(self, indices: np.ndarray, length: int) -> np.ndarray:
    """Sequences to validate on: one after the other, the same for every run.

    Args:
      indices: `[sequence]` integers from 0.
      length: tokens of a sequence, targets included.

    Returns:
      `[sequence, pos]` int32.
    """
    total = self.manifest.validation["tokens"]
    first = windows.in_order(indices, total, length)
    return _copied(self._validation, first, length)

  def check(
    self, length: int, n_sequences: int, validation_sequences: int
  ) -> None:
    """Fails if a run would read past the end of a file.

    Args:
      length: tokens of a sequence, targets included.
      n_sequences: of the whole run.
      validation_sequences: of one validation; 0 for none.
    """
    manifest = self.manifest
    windows.check_enough(
      self.sampling, manifest.train_tokens, length, n_sequences
    )
    if validation_sequences:
      windows.check_enough(
        "once", manifest.validation["tokens"], length, validation_sequences
      )

  @functools.cached_property
  def _train(self):
    files = self.manifest.train
    return [_mapped(self.folder, file, self.manifest.dtype) for file in files]

  @functools.cached_property
  def _validation(self):
    file = self.manifest.validation
    return [_mapped(self.folder, file, self.manifest.dtype)]


def open_corpus(
  folder: str | os.PathLike, *, sampling: str, d_vocab: int
) -> Corpus:
  """Opens a prepared corpus, of which every byte is checked.

  Hashing reads each file once, a second or so per GB: less than the time lost
  by training on other tokens than the record of a run says.

  Args:
    folder: as `experiments/prepare_corpus.py` made it.
    sampling: "replacement" or "once", see `Corpus`.
    d_vocab: of the model.

  Raises:
    ValueError: there is no corpus, or it is damaged, or it has no tokens, or
      more ids than the model.
  """
  check_choice("sampling", sampling, windows.SAMPLINGS)
  folder = pathlib.Path(folder)
  manifest = read_manifest(folder)
  check(
    manifest.d_vocab <= d_vocab,
    f"corpus {folder}: d_vocab",
    f"{d_vocab} ids in the model",
    f"at least {manifest.d_vocab}, the ids of the corpus",
    "train a model with this vocabulary",
  )
  check(
    manifest.train_tokens > 0,
    f"corpus {folder}",
    "no tokens to train on",
    "at least one sequence",
    "prepare it again",
  )
  check_files(folder, manifest)
  return Corpus(folder, manifest, sampling)


def check_files(folder: pathlib.Path, manifest: Manifest) -> None:
  """Fails unless every file of a corpus is what its manifest says."""
  item = np.dtype(manifest.dtype).itemsize
  for file in [*manifest.train, manifest.validation]:
    path = folder / file["file"]
    _check_size(path, file["tokens"] * item)
    _check_content(path, file["sha256"])
  _check_content(folder / TOKENIZER, manifest.tokenizer_sha256)


def _check_size(path, expected):
  check(
    path.is_file() and path.stat().st_size == expected,
    str(path),
    f"{path.stat().st_size:,} bytes" if path.is_file() else "no such file",
    f"{expected:,} bytes",
    "copy or prepare the corpus again",
  )


def _check_content(path, expected):
  got = sha256(path)
  check(
    got == expected,
    str(path),
    f"sha256 {got}",
    f"{expected}, as the manifest says",
    "copy or prepare the corpus again",
  )


def sha256(path: pathlib.Path) -> str:
  """The sha256, in hex, of a file that need not fit into memory."""
  check(
    path.is_file(), str(path), "no such file", "a file", "copy the corpus again"
  )
  with open(path, "rb", buffering=0) as file:
    return hashlib.file_digest(file, "sha256").hexdigest()


def _mapped(folder, file, dtype):
  """The ids of a file, without reading them; NumPy maps no empty file."""
  if not file["tokens"]:
    return np.empty(0, dtype)
  # A plain array: slicing one is three times as fast as slicing a memmap.
  return np.asarray(np.memmap(folder / file["file"], dtype, mode="r"))


def _copied(shards, first, length):
  """The windows that start at some tokens, out of consecutive shards."""
  ends = np.cumsum([len(shard) for shard in shards])
  copies = np.empty((len(first), length), np.int32)
  for row, start in zip(copies, first, strict=True):
    shard = int(np.searchsorted(ends, start, side="right"))
    offset = start - (ends[shard] - len(shards[shard]))
    filled = 0
    while filled < length:
      piece = shards[shard][offset : offset + length - filled]
      row[filled : filled + len(piece)] = piece
      filled, shard, offset = filled + len(piece), shard + 1, 0
  return copies
