"""How do derived lines and random bits become token ids? Many lines at once.

A frame is a derived line as a row of slots, each of which draws a word from a
pool. The words of a pool stand in groups, the splits of a task: another split's
words are then the pool without one run, in a circle.
"""

import dataclasses
import re

import numpy as np

from headjax.data.toy_grammar import lines
from headjax.data.toy_pools import pools
from headjax.data.toy_tokenizer import END_OF_TEXT, PATTERN
from headjax.models.tokenizers import Tokenizer

# What stands before a line; a repeated token is drawn more often.
_BEFORE = ("\n", "\n", "\n", END_OF_TEXT)
_PART = re.compile(
  r"(?P<repeat>\[=\])|(?P<open>\[)|(?P<close>\])"
  r"|(?P<space> ?)\{(?P<name>[a-z]+)(?P<form>[01]?)(?P<rule>[/=]?)"
  r"(?P<target>[a-z]*)\}"
  rf"|(?P<literal>{PATTERN})"
)


@dataclasses.dataclass(frozen=True)
class Frames:
  """All lines of the language, as tables.

  Attributes:
    bounds: `[frame]` uint64; a frame's 32-bit draws end before its bound.
    lengths: `[frame]` slots, with the one of what stands before the line.
    pool: `[frame, slot]` the pool that a slot draws from.
    same: `[frame, slot]` the slot whose place in its pool is taken; by default
      the slot itself.
    other: `[frame, slot]` the earlier slot whose group is avoided, or -1.
    starts: `[pool]` first row of a pool in `ids` and `groups`.
    sizes: `[pool]` words.
    ends: `[pool, group]` place after the group's last word in its pool; 0 for
      group 0, which is none.
    counts: `[pool, group]` words of the group in the pool.
    ids: `[word]` token ids of all pools in a row.
    groups: `[word]` their groups, from 1.
  """

  bounds: np.ndarray
  lengths: np.ndarray
  pool: np.ndarray
  same: np.ndarray
  other: np.ndarray
  starts: np.ndarray
  sizes: np.ndarray
  ends: np.ndarray
  counts: np.ndarray
  ids: np.ndarray
  groups: np.ndarray

  def fill(self, frame: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """The token ids of some lines.

    Args:
      frame: `[line]` frames.
      draws: `[line, slot]` non-negative integers, at least as many slots as
        the longest of the frames has.

    Returns:
      `[line, slot]` ids; what lies beyond a frame's length means nothing.
    """
    rows = np.arange(len(frame))
    width = self.lengths[frame].max(initial=0)
    # The last column stays group 0: it is what slot -1 means.
    groups = np.zeros((len(frame), width + 1), np.int64)
    places = np.zeros((len(frame), width), np.int64)
    ids = np.zeros((len(frame), width), np.int32)
    for j in range(width):
      pool = self.pool[frame, j]
      avoided = groups[rows, self.other[frame, j]]
      left = self.sizes[pool] - self.counts[pool, avoided]
      places[:, j] = self.ends[pool, avoided] + draws[:, j] % left
      places[:, j] = places[rows, self.same[frame, j]] % self.sizes[pool]
      word = self.starts[pool] + places[:, j]
      groups[:, j], ids[:, j] = self.groups[word], self.ids[word]
    return ids


def frames(tokenizer: Tokenizer) -> Frames:
  """The tables of the whole grammar."""
  derived = list(lines())
  numbers: dict[str | tuple[str, ...], int] = {}
  rows = [_slots(text, numbers) for _, text in derived]
  width = max(map(len, rows))
  pad = [(0, j, -1) for j in range(width)]
  table = np.array([row + pad[len(row) :] for row in rows])
  ends = np.cumsum([share for share, _ in derived])
  known = pools(tokenizer)
  return Frames(
    np.array([int(end * 2**32) for end in ends], np.uint64),
    np.array([len(row) for row in rows]),
    *np.moveaxis(table, 2, 0),
    **_tables([_groups(key, known) for key in numbers], tokenizer),
  )


def _slots(text, numbers):
  """(pool, same, other) of each slot; a new pool gets the next number."""
  slots, names = [(_number("before", numbers), 0, -1)], [""]
  start, repeated = 0, slice(0)
  for part in _PART.finditer(text):
    here = len(slots)
    if part["open"]:
      start = here
    elif part["close"]:
      repeated = slice(start, here)
    elif part["repeat"]:
      copied = range(repeated.start, repeated.stop)
      slots += [(slots[j][0], j, -1) for j in copied]
      names += names[repeated]
    elif part["literal"]:
      slots.append((_number(part["literal"], numbers), here, -1))
      names.append("")
    else:
      slots.append(_drawn(part, names, numbers))
      names.append(part["name"])
  return slots


def _drawn(part, names, numbers):
  """The slot of a word that is drawn."""
  here = len(names)
  pool = _number(part.group("space", "name", "form"), numbers)
  if not part["rule"]:
    return pool, here, -1
  last = here - 1 - names[::-1].index(part["target"])
  return (pool, here, last) if part["rule"] == "/" else (pool, last, -1)


def _number(key, numbers):
  return numbers.setdefault(key, len(numbers))


def _groups(key, known):
  """The texts of a pool, in groups."""
  if isinstance(key, str):
    return [_BEFORE if key == "before" else [key]]
  space, name, form = key
  return [
    [space + (word[int(form)] if form else word) for word in group]
    for group in known[name]
  ]


def _tables(rows, tokenizer):
  """The fields of `Frames` that describe the pools."""
  n_groups = 1 + max(map(len, rows))
  counts = np.zeros((len(rows), n_groups), np.int64)
  for row, groups in zip(counts, rows, strict=True):
    row[1 : 1 + len(groups)] = [len(group) for group in groups]
  ends = np.cumsum(counts, 1)
  sizes = ends[:, -1]
  texts = [text for groups in rows for group in groups for text in group]
  return {
    "starts": np.cumsum(sizes) - sizes,
    "sizes": sizes,
    "ends": ends,
    "counts": counts,
    "ids": np.array([tokenizer.single(text) for text in texts], np.int32),
    "groups": np.concatenate(
      [np.repeat(np.arange(n_groups), row) for row in counts]
    ),
  }
