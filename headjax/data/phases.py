"""What if the text changes in the middle of a run? One corpus, then another.

Whether a sequence is of the first or of the second corpus is a matter of its
index alone, so that a run can be stopped and resumed on either side.
"""

import hashlib

import numpy as np

from headjax.checks import check
from headjax.data.keys import Keys
from headjax.data.toy import Toy
from headjax.models.tokenizers import Tokenizer

CHANGE = 16_000  # sequences: 1000 steps of 16


class Phases:
  """Two corpora, one after the other.

  Attributes:
    name: for labels and configs.
  """

  def __init__(self, first, second, change: int, name: str):
    """Checks that the second one's ids mean the same in the first.

    Args:
      first: a corpus, whose vocabulary is that of both.
      second: a corpus.
      change: sequences of the first one, before those of the second.
      name: for labels and configs.

    Raises:
      ValueError: an id of the second corpus is another token in the first.
    """
    ids = range(second.d_vocab)
    ours, theirs = first.tokenizer, second.tokenizer
    check(
      second.d_vocab <= first.d_vocab
      and all(ours.decode([i]) == theirs.decode([i]) for i in ids),
      "second corpus", f"vocabulary of {second.name}",
      f"one that begins that of {first.name}", "take other corpora",
    )  # fmt: skip
    check(change >= 1, "change", change, "at least 1", "give more")
    self.first, self.second, self.change, self.name = (
      first, second, change, name
    )  # fmt: skip

  @property
  def tokenizer(self) -> Tokenizer:
    """The vocabulary."""
    return self.first.tokenizer

  @property
  def d_vocab(self) -> int:
    """Number of token ids."""
    return self.first.d_vocab

  @property
  def digest(self) -> str:
    """The sha256, in hex, of both digests and when they change."""
    known = f"{self.first.digest} {self.change} {self.second.digest}"
    return hashlib.sha256(known.encode()).hexdigest()

  def sequences(
    self, seed: int, indices: np.ndarray, length: int
  ) -> np.ndarray:
    """Sequences to train on: of the second corpus from its own start on.

    Args:
      seed: of both texts; any integer.
      indices: `[sequence]` integers from 0: step * batch + row.
      length: tokens of a sequence, targets included.

    Returns:
      `[sequence, pos]` int32.
    """
    indices = np.asarray(indices)
    late = indices >= self.change
    found = np.zeros((len(indices), length), np.int32)
    if not late.all():
      found[~late] = self.first.sequences(seed, indices[~late], length)
    if late.any():
      rest = indices[late] - self.change
      found[late] = self.second.sequences(seed, rest, length)
    return found

  def validation(self, indices: np.ndarray, length: int) -> np.ndarray:
    """Sequences to validate on: of the first corpus throughout.

    Args:
      indices: `[sequence]` integers from 0.
      length: tokens of a sequence, targets included.

    Returns:
      `[sequence, pos]` int32.
    """
    return self.first.validation(indices, length)

  def check(
    self, length: int, n_sequences: int, validation_sequences: int
  ) -> None:
    """Fails unless both have as much text as they are asked for.

    Args:
      length: tokens of a sequence, targets included.
      n_sequences: of the whole run.
      validation_sequences: of one validation.
    """
    before = min(self.change, n_sequences)
    self.first.check(length, before, validation_sequences)
    self.second.check(length, n_sequences - before, 0)


class KeysThenToy(Phases):
  """Text with codes, then the same language without any."""

  name = "keys-then-toy"

  def __init__(self):
    """Endless, and equal to every other one."""
    super().__init__(Keys(), Toy(), CHANGE, self.name)
