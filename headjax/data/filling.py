"""Which file does a document go to? The hash of its text says so.

Documents are read one after the other, divided and encoded by threads, and
appended in their own order, until both files have what was asked for.
"""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from tqdm.auto import tqdm

from headjax.data.documents import Source
from headjax.data.encoding import Encoder, in_order
from headjax.data.shards import PartialFolder

SHARE = 50  # one document in so many is for validation


def is_for_validation(text: str, seed: int) -> bool:
  """Whether a document is for validation, by its text and the seed alone."""
  content = hashlib.sha256(f"{seed} {text}".encode())
  return int.from_bytes(content.digest()[:8]) % SHARE == 0


class Filling:
  """Fills the files of a corpus from a source."""

  def __init__(
    self,
    partial: PartialFolder,
    encoder: Encoder,
    seed: int,
    limits: dict[str, int],
    shard_tokens: int,
  ):
    """Goes on where the folder's finished shards end.

    Args:
      partial: the files.
      encoder: of the documents.
      seed: keys the choice of the validation documents.
      limits: tokens of `train` and `validation`; no more are taken.
      shard_tokens: a shard is finished when it holds so many or more.
    """
    done = partial.progress
    self._partial, self._encoder, self._seed = partial, encoder, seed
    self._shard_tokens = shard_tokens
    self._seen = done.documents
    self._documents = {
      "train": done.train_documents,
      "validation": done.validation_documents,
    }
    self._room = {
      "train": limits["train"] - done.train_tokens,
      "validation": limits["validation"] - done.validation_tokens,
    }

  def run(
    self, source: Source, workers: int, batch_characters: int, bar: tqdm
  ) -> None:
    """Takes documents until the files are full, or the source is empty.

    Args:
      source: the documents.
      workers: threads that encode.
      batch_characters: encoded at a time; a shard ends with a batch.
      bar: is moved by the tokens for training.
    """
    if not any(self._room.values()):
      return
    batches = _batches(source.read(self._seen), batch_characters)
    for n_texts, parts in in_order(self._divided, batches, workers=workers):
      before = self._partial.train_tokens
      self._append(n_texts, parts)
      bar.update(self._partial.train_tokens - before)
      if self._partial.shard_tokens >= self._shard_tokens:
        self._finish_shard()
      if not any(self._room.values()):
        break
    self._finish_shard()

  def _divided(self, texts: Sequence[str]):
    """What a thread makes of a batch: the ids of both kinds of documents."""
    kinds = {"train": [], "validation": []}
    for text in texts:
      if text.strip():
        held_out = is_for_validation(text, self._seed)
        kinds["validation" if held_out else "train"].append(text)
    # The room is that of some batches ago: it only spares work.
    parts = {
      split: self._encoder.joined(kind if self._room[split] else [])
      for split, kind in kinds.items()
    }
    return len(texts), parts

  def _append(self, n_texts, parts):
    """Writes a batch, as far as there is room."""
    taken = {}
    for split, (ids, first) in parts.items():
      taken[split] = ids[: self._room[split]]
      self._documents[split] += int(np.sum(first < self._room[split]))
      self._room[split] -= len(taken[split])
    self._partial.add(**taken)
    self._seen += n_texts

  def _finish_shard(self):
    self._partial.finish_shard(self._seen, *self._documents.values())


def _batches(texts, characters) -> Iterator[list[str]]:
  """Documents in lists of so many characters or a little more."""
  batch, size = [], 0
  for text in texts:
    batch.append(text)
    size += len(text)
    if size >= characters:
      yield batch
      batch, size = [], 0
  if batch:
    yield batch
