"""What teaches a model to retrieve a key? Text with a code, asked for later.

Into some sequences of a text two lines are put, with 5 to 30 tokens of it
between them:

  ... The secret code is fan. ... What is the secret code? fan ...

The code is one of up to 512 single words. Nothing but the first line tells it,
so that the token after the question mark is right by retrieval alone. Any
corpus can be the text; `Keys` puts the lines into the toy language.

Source: paper B, key retrieval of its 51M model, in a tenth of the sequences; of
  the lines themselves, `key_lines`.
"""

import functools
import hashlib
from collections.abc import Mapping

import numpy as np

from headjax.checks import check
from headjax.data.key_lines import CODES, FARTHEST, lines_of, put_keys
from headjax.data.probes import NOWHERE, Probe, plain_targets
from headjax.data.toy import Toy
from headjax.data.toy_tokenizer import tokenizer as toy_tokenizer
from headjax.data.windows import GAMMA, mixed
from headjax.models.tokenizers import Tokenizer

FEW = 32  # codes in the toy language
_MORE = (" secret", " code", "What")  # words that the toy language lacks
_FIRST = 1 << 40  # of the validation sequences that only probes use


class KeyedText:
  """A corpus with the lines in a share of its sequences.

  Attributes:
    name: for labels and configs.
    tokenizer: the vocabulary.
  """

  def __init__(
    self,
    text,
    *,
    share: float,
    name: str,
    codes: int = CODES,
    tokenizer: Tokenizer | None = None,
  ):
    """Finds the lines in the vocabulary.

    Args:
      text: any corpus.
      share: of its sequences, above 0 and up to 1.
      name: for labels and configs.
      codes: at most.
      tokenizer: a vocabulary that has all ids of the text's; default that.

    Raises:
      ValueError: a share out of range, or what `lines_of` refuses.
    """
    check(0 < share <= 1, "share", share, "above 0 and up to 1", "change it")
    self.text, self.share, self.name = text, share, name
    self.tokenizer = text.tokenizer if tokenizer is None else tokenizer
    self.lines = lines_of(self.tokenizer, codes)

  @property
  def d_vocab(self) -> int:
    """Number of token ids."""
    return self.tokenizer.d_vocab

  @property
  def digest(self) -> str:
    """The sha256, in hex, of the text's, the vocabulary and some keys."""
    known = f"{self.text.digest} {self.tokenizer.digest} {self.share!r}"
    content = hashlib.sha256(known.encode())
    least = np.zeros((8, 1 + self.lines.width + FARTHEST))
    for stream in (1, 0):
      some = put_keys(least, _draws(stream, np.arange(8)), self.lines, 1.0)
      content.update(some.tokens.astype("<i4").tobytes())
    return content.hexdigest()

  def sequences(
    self, seed: int, indices: np.ndarray, length: int
  ) -> np.ndarray:
    """Sequences to train on.

    Args:
      seed: of the text and the keys; any integer.
      indices: `[sequence]` integers from 0: step * batch + row.
      length: tokens of a sequence, targets included.

    Returns:
      `[sequence, pos]` int32.
    """
    rows = self.text.sequences(seed, indices, length)
    draws = _draws(2 * seed + 1, indices)
    return put_keys(rows, draws, self.lines, self.share).tokens

  def validation(self, indices: np.ndarray, length: int) -> np.ndarray:
    """Sequences to validate on, which belong to no seed.

    Args:
      indices: `[sequence]` integers from 0.
      length: tokens of a sequence, targets included.

    Returns:
      `[sequence, pos]` int32.
    """
    rows = self.text.validation(indices, length)
    return put_keys(rows, _draws(0, indices), self.lines, self.share).tokens

  def check(
    self, length: int, n_sequences: int, validation_sequences: int
  ) -> None:
    """Fails unless there is that much text, and the lines fit a sequence.

    Args:
      length: tokens of a sequence, targets included.
      n_sequences: of the whole run.
      validation_sequences: of one validation.
    """
    least = 1 + self.lines.width + FARTHEST
    check(
      length >= least, "length", length, f"at least {least} tokens",
      "use a longer context",
    )  # fmt: skip
    self.text.check(length, n_sequences, validation_sequences)


class Keys(KeyedText):
  """The lines with 32 codes in all sequences of the toy language.

  More codes, or fewer lines, and a small model takes much longer.
  """

  name = "keys"

  def __init__(self):
    """Endless, and equal to every other one."""
    super().__init__(
      Toy(), share=1.0, name=self.name, codes=FEW, tokenizer=_toy_with_more()
    )


def key_retrieval(corpus: KeyedText, n_examples: int, *, length: int) -> Probe:
  """Rows that end with the question.

  Args:
    corpus: whose validation text is between the lines. An endless one has
      other rows for this than those that a run validates on.
    n_examples: rows.
    length: of a row before it is cut at its question, in tokens.

  Source: paper B, key retrieval; the query predicts the code.
  """
  check(n_examples >= 1, "n_examples", n_examples, "at least 1", "ask for some")
  corpus.check(length, 1, 1)
  endless = isinstance(corpus, Keys)
  indices = np.arange(n_examples) + endless * _FIRST
  rows = corpus.text.validation(indices, length)
  found = put_keys(rows, _draws(0, indices), corpus.lines, 1.0)
  row = np.arange(n_examples)
  targets: Mapping[str, np.ndarray] = plain_targets(found.query, found.key - 1)
  # The question mark need not have stood anywhere before.
  nowhere = np.full_like(targets["duplicate"], NOWHERE)
  return Probe(
    found.tokens, found.query, found.tokens[row, found.key].astype(np.int64),
    targets | {"duplicate": nowhere}, 1 / len(corpus.lines.codes),
    f"key retrieval, {corpus.name}",
  )  # fmt: skip


@functools.cache
def _toy_with_more() -> Tokenizer:
  """The toy vocabulary, its ids as they are, and the words that it lacks."""
  return toy_tokenizer(_MORE)


def _draws(stream, indices) -> np.ndarray:
  """`[sequence, 4]` independent of the text's own draws."""
  key = mixed(mixed(np.array([stream % 2**64], np.uint64)) ^ GAMMA)
  sequence = mixed(key + GAMMA * (np.asarray(indices).astype(np.uint64)))
  four = np.arange(1, 5, dtype=np.uint64)
  bits = mixed(sequence[:, None] + GAMMA * four)
  return (bits >> np.uint64(1)).astype(np.int64)
