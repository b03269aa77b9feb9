"""What teaches a model to find a rule in its context? Labelled lines, endless.

A sequence is one text whose lines all follow one rule of a family, and whose
inputs all differ, so that only the rule tells a label:

  3,5,B
  0,1,A
  7,2,A

It begins with the token that ends a text and is cut at its length. Its labels
can be told from the rule as soon as the lines before have shown which it is. A
sequence is a pure function of its seed and its index, the same everywhere.
"""

import functools
import hashlib

import numpy as np
import tokenizers as backends
from tokenizers import decoders, models, pre_tokenizers

from headjax.checks import check, check_choice
from headjax.data.rules import FAMILIES, LABELS
from headjax.data.windows import GAMMA, mixed
from headjax.models.tokenizers import Tokenizer

END_OF_TEXT = "<|endoftext|>"
_DIGITS = 8
_LINE = 6  # tokens
LONGEST = 1 + _LINE * _DIGITS**2  # tokens, with every input once
_TOKENS = (END_OF_TEXT, "<unk>", *map(str, range(_DIGITS)), ",", "\n", *LABELS)


class RuleText:
  """The corpus of a family of rules; endless.

  Attributes:
    name: for labels and configs.
  """

  def __init__(self, family: str):
    """Names the family.

    Args:
      family: one of FAMILIES.
    """
    check_choice("family", family, FAMILIES)
    self.family, self.name = family, f"rules-{family}"

  @property
  def tokenizer(self) -> Tokenizer:
    """A token is a character; others are unknown."""
    return _tokenizer()

  @property
  def d_vocab(self) -> int:
    """Number of token ids."""
    return len(_TOKENS)

  @property
  def digest(self) -> str:
    """The sha256, in hex, of the vocabulary and some text."""
    content = hashlib.sha256(_tokenizer().digest.encode())
    for stream in (1, 0):
      text = _text(self.family, stream, np.arange(20), LONGEST)
      content.update(text.astype("<i4").tobytes())
    return content.hexdigest()

  def sequences(
    self, seed: int, indices: np.ndarray, length: int
  ) -> np.ndarray:
    """Sequences to train on.

    Args:
      seed: of the text; any integer.
      indices: `[sequence]` integers from 0: step * batch + row.
      length: tokens of a sequence, targets included; at most LONGEST.

    Returns:
      `[sequence, pos]` int32.
    """
    return _text(self.family, 2 * seed + 1, indices, length)

  def validation(self, indices: np.ndarray, length: int) -> np.ndarray:
    """Sequences to validate on, which belong to no seed.

    Args:
      indices: `[sequence]` integers from 0.
      length: tokens of a sequence, targets included; at most LONGEST.

    Returns:
      `[sequence, pos]` int32.
    """
    return _text(self.family, 0, indices, length)

  def check(
    self, length: int, n_sequences: int, validation_sequences: int
  ) -> None:
    """Fails unless sequences may be so long; there is any number of them.

    Args:
      length: tokens of a sequence, targets included; 1 has no target.
      n_sequences: of the whole run.
      validation_sequences: of one validation.
    """
    check(
      2 <= length <= LONGEST,
      "length",
      length,
      f"2 to {LONGEST} tokens, in which no input comes twice",
      "use another context length",
    )


@functools.cache
def _tokenizer() -> Tokenizer:
  ids = {token: i for i, token in enumerate(_TOKENS)}
  backend = backends.Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
  backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
  backend.decoder = decoders.Fuse()
  backend.add_special_tokens([END_OF_TEXT])
  return Tokenizer(backend, "rules", ids[END_OF_TEXT])


@functools.cache
def _labels(family: str) -> np.ndarray:
  """`[rule, input]` ids of the labels; an input is 8 a + b."""
  found = [
    [rule.holds(*divmod(i, _DIGITS)) for i in range(_DIGITS**2)]
    for rule in FAMILIES[family]
  ]
  return np.where(found, _TOKENS.index(LABELS[1]), _TOKENS.index(LABELS[0]))


def _text(family, stream, indices, length):
  """Sequences of a stream of random bits."""
  key = mixed(np.array([stream % 2**64], np.uint64))
  sequence = _branch(key, np.asarray(indices).astype(np.uint64))
  table, n_lines = _labels(family), -(-length // _LINE)
  # Sorted random numbers are an order of all inputs; one more draws the rule.
  draws = _branch(sequence[:, None], np.arange(1 + _DIGITS**2, dtype=np.uint64))
  rule = (draws[:, -1] % np.uint64(len(table))).astype(np.int64)
  given = np.argsort(draws[:, :-1], axis=1)[:, :n_lines]
  digit = _TOKENS.index("0")
  lines = np.full((*given.shape, _LINE), _TOKENS.index(","))
  lines[..., 0], lines[..., 2] = divmod(given, _DIGITS)
  lines[..., [0, 2]] += digit
  lines[..., 4] = table[rule[:, None], given]
  lines[..., 5] = _TOKENS.index("\n")
  start = np.full((len(lines), 1), _TOKENS.index(END_OF_TEXT))
  text = np.hstack([start, lines.reshape(len(lines), -1)])
  return text[:, :length].astype(np.int32)


def _branch(keys, numbers):
  """Independent keys, one for each number under a key."""
  return mixed(keys + GAMMA * (numbers + np.uint64(1)))
