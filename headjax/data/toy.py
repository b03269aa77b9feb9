"""What is there to train on without any files? A small made-up language.

Text that contains the built-in tasks, generated as it is asked for: lines of a
fixed grammar over 500 words. It looks like this:

  The farmers near the tall clock are not old and red.
  Anna bought two cats and one small yellow cat.
  path = 'tree'
  note = "wolf red door"
  List: map fan girl owl, map fan girl owl, map fan girl owl.

A sequence begins with a line, every fourth one with the token that ends a text
before it, and is cut at its length. It is a pure function of its seed and its
index, the same on every machine and with every library version.
"""

import functools
import hashlib

import numpy as np

from headjax.checks import check
from headjax.data.toy_frames import Frames, frames
from headjax.data.toy_tokenizer import tokenizer
from headjax.data.windows import GAMMA, mixed
from headjax.models.tokenizers import Tokenizer


class Toy:
  """The corpus; endless, and equal to every other one.

  Attributes:
    name: for labels and configs.
  """

  name = "toy"

  @property
  def tokenizer(self) -> Tokenizer:
    """The vocabulary, which the built-in tasks accept."""
    return _tokenizer()

  @property
  def d_vocab(self) -> int:
    """Number of token ids."""
    return _tokenizer().d_vocab

  @property
  def digest(self) -> str:
    """The sha256, in hex, of the vocabulary, the grammar and some text."""
    return _digest()

  def sequences(
    self, seed: int, indices: np.ndarray, length: int
  ) -> np.ndarray:
    """Sequences to train on.

    Args:
      seed: of the text; any integer.
      indices: `[sequence]` integers from 0: step * batch + row.
      length: tokens of a sequence, targets included. A shorter sequence is the
        start of a longer one.

    Returns:
      `[sequence, pos]` int32.
    """
    return _text(2 * seed + 1, indices, length)

  def validation(self, indices: np.ndarray, length: int) -> np.ndarray:
    """Sequences to validate on, which belong to no seed.

    Args:
      indices: `[sequence]` integers from 0.
      length: tokens of a sequence, targets included.

    Returns:
      `[sequence, pos]` int32.
    """
    return _text(0, indices, length)

  def check(
    self, length: int, n_sequences: int, validation_sequences: int
  ) -> None:
    """Fails unless there is that much text: here there always is.

    Args:
      length: tokens of a sequence, targets included; 1 has no target.
      n_sequences: of the whole run.
      validation_sequences: of one validation.
    """
    check(length >= 2, "length", length, "at least 2 tokens", "give more")


@functools.cache
def _tokenizer() -> Tokenizer:
  return tokenizer()


@functools.cache
def _frames() -> Frames:
  return frames(_tokenizer())


@functools.cache
def _digest() -> str:
  content = hashlib.sha256(_tokenizer().digest.encode())
  for array in vars(_frames()).values():
    content.update(array.astype("<i8").tobytes())
  for text in (_text(1, np.arange(20), 128), _text(0, np.arange(20), 128)):
    content.update(text.astype("<i4").tobytes())
  return content.hexdigest()


def _text(stream, indices, length):
  """Sequences of a stream of random bits, cut out of whole lines."""
  table = _frames()
  key = mixed(np.array([stream % 2**64], np.uint64))
  sequence = _branch(key, np.asarray(indices, np.uint64))
  # Enough for the shortest lines and one token more, which may be dropped.
  n_lines = 1 + length // table.lengths.min()
  line = _branch(sequence[:, None], np.arange(n_lines, dtype=np.uint64))
  frame = np.searchsorted(table.bounds, line >> np.uint64(32), side="right")
  widths = table.lengths[frame]
  needed = np.cumsum(widths, 1) - widths <= length
  frame, line = frame[needed], line[needed]
  slots = np.arange(widths[needed].max(initial=0))
  draws = _branch(line[:, None], slots.astype(np.uint64)) >> np.uint64(1)
  ids = table.fill(frame, draws.astype(np.int64))
  flat = ids[slots < table.lengths[frame][:, None]]
  widths = (widths * needed).sum(1)
  first = np.cumsum(widths) - widths
  first += flat[first] != _tokenizer().bos  # no line break at the start
  return flat[first[:, None] + np.arange(length)]


def _branch(keys, numbers):
  """Independent keys, one for each number under a key."""
  return mixed(keys + GAMMA * (numbers + np.uint64(1)))
