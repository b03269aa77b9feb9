"""Which two lines hold a key and ask for it? Ids, put into rows of a text.

Source: paper B, key retrieval of its 51M model: both lines, 512 codes and the
gap. The line breaks and the choice of codes are ours.
"""

import dataclasses
import re

import numpy as np

from headjax.checks import check
from headjax.data.probes import NOWHERE
from headjax.models.tokenizers import Tokenizer
from headjax.outline import of_fields, table_of_fields

TELLS, ASKS = "\nThe secret code is", "\nWhat is the secret code?"
STOP, BREAK = ".", "\n"
NEAREST, FARTHEST = 5, 30  # tokens of text between the two lines
CODES = 512  # at most
_CODE = re.compile(r" [a-z]{3,10}")


@dataclasses.dataclass(frozen=True)
class Lines:
  """The two lines as ids.

  Attributes:
    tells: before the code.
    stop: after it.
    asks: the question.
    line_break: after the answer.
    codes: `[code]`, ascending.
  """

  tells: np.ndarray
  stop: int
  asks: np.ndarray
  line_break: int
  codes: np.ndarray

  @property
  def width(self) -> int:
    """Tokens of both lines."""
    return len(self.tells) + len(self.asks) + 4


def lines_of(tokenizer: Tokenizer, most: int = CODES) -> Lines:
  """The two lines in a vocabulary.

  Codes are the first single tokens of a space and three to ten small letters
  that are not in the lines themselves.

  Args:
    tokenizer: the vocabulary.
    most: codes.

  Raises:
    ValueError: the vocabulary cannot write the lines, or has no such token.
  """
  tells, asks = tokenizer.encode(TELLS), tokenizer.encode(ASKS)
  stop, line_break = tokenizer.single(STOP), tokenizer.single(BREAK)
  check(
    tokenizer.decode([*tells, *asks]) == TELLS + ASKS
    and None not in (stop, line_break),
    "tokenizer", tokenizer.name, f"one that writes {TELLS + ASKS!r}",
    "use the vocabulary of the corpus keys, or a public one",
  )  # fmt: skip
  used, codes = {*tells, *asks}, []
  for i in range(tokenizer.d_vocab):
    text = tokenizer.decode([i])
    if _CODE.fullmatch(text) and i not in used and tokenizer.single(text) == i:
      codes.append(i)
    if len(codes) == most:
      break
  check(
    len(codes) >= 2, "tokenizer", f"{len(codes)} words that may be codes",
    "at least 2", "use another vocabulary",
  )  # fmt: skip
  return Lines(*map(np.array, (tells, stop, asks, line_break, codes)))


@dataclasses.dataclass(frozen=True, eq=False)
class Keyed:
  """Rows of text into which the lines are put.

  Attributes:
    tokens: `[row, pos]` int32.
    key: `[row]` position of the code in the first line, -1 for none.
    query: `[row]` position of the question mark, -1 for none.
  """

  tokens: np.ndarray
  key: np.ndarray
  query: np.ndarray

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def put_keys(
  rows: np.ndarray, draws: np.ndarray, lines: Lines, share: float
) -> Keyed:
  """Puts both lines into a share of the rows, whole, at random places.

  Args:
    rows: `[row, pos]` ids of a text, at least as long as both lines with the
      longest gap and a token before them.
    draws: `[row, 4]` random non-negative integers below 2**63: whether, which
      code, the gap, the place.
    lines: of the vocabulary.
    share: of rows that get them, 0 to 1.
  """
  length = rows.shape[1]
  tokens, key, query = rows.astype(np.int32), [], []
  for row, text, (whether, code, gap, place) in zip(
    tokens, rows, draws.tolist(), strict=True
  ):
    if whether >= share * 2.0**63:
      key.append(NOWHERE)
      query.append(NOWHERE)
      continue
    code = lines.codes[code % len(lines.codes)]
    gap = NEAREST + gap % (FARTHEST + 1 - NEAREST)
    start = 1 + place % (length - lines.width - gap)
    first = [*lines.tells, code, lines.stop]
    second = [*lines.asks, code, lines.line_break]
    between, rest = text[start : start + gap], text[start + gap :]
    row[:] = np.concatenate([text[:start], first, between, second, rest])[
      :length
    ]
    key.append(start + len(lines.tells))
    query.append(start + len(first) + gap + len(lines.asks) - 1)
  return Keyed(tokens, np.array(key, int), np.array(query, int))
