"""What does a head look at when one token is asked? Rows with marked positions.

Every row of a probe has one query, whose next token is asked for, and for each
kind of head the keys that such a head attends to from there:

  induction    what followed the query's token the last time
  previous     the token before the query
  duplicate    where the query's token stood before
  first        the first token
  self         the query itself
  local        the tokens 2 to 5 before it

and, of a probe about an indirect object,

  name_mover   the indirect object
  s_inhibition the subject, both times

Of several keys of a kind the mean is meant.
"""

import dataclasses
import hashlib
from collections.abc import Mapping

import numpy as np

from headjax.checks import check
from headjax.outline import of_fields, table_of_fields

PLAIN = ("induction", "previous", "duplicate", "first", "self", "local")
INDIRECT_OBJECT = (*PLAIN, "name_mover", "s_inhibition")
NOWHERE = -1
_BASELINE = 50  # keys that the baseline of a row is the mean of


@dataclasses.dataclass(frozen=True, eq=False)
class Probe:
  """Rows of tokens, each with a query.

  Attributes:
    tokens: `[example, pos]` int32 ids, padded on the right with any ids.
    query: `[example]` position whose prediction and attention are looked at;
      what follows it does not matter.
    answer: `[example]` the right next token.
    targets: kind -> `[example, key]` positions, -1 for none.
    chance: share of right answers of a guess.
    name: for labels.
    foil: `[example]` a wrong next token to compare with, or None.
  """

  tokens: np.ndarray
  query: np.ndarray
  answer: np.ndarray
  targets: Mapping[str, np.ndarray]
  chance: float
  name: str
  foil: np.ndarray | None = None
  split: str = ""

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def __len__(self) -> int:
    return len(self.tokens)

  @property
  def lengths(self) -> np.ndarray:
    """`[example]`: tokens up to the query."""
    return self.query + 1

  @property
  def digest(self) -> str:
    """The sha256, in hex, of ids up to the query, queries and answers."""
    content = hashlib.sha256()
    seen = np.arange(self.tokens.shape[1]) <= self.query[:, None]
    arrays = [np.where(seen, self.tokens, 0), self.query, self.answer]
    arrays += [] if self.foil is None else [self.foil]
    for array in arrays:
      content.update(f"{array.shape}".encode())
      content.update(np.asarray(array).astype("<i4").tobytes())
    return content.hexdigest()

  def select(self, indices) -> "Probe":
    """The rows at some indices."""
    rows = np.arange(len(self))[indices]
    fields = ("tokens", "query", "answer", "foil")
    values = {field: getattr(self, field) for field in fields}
    return dataclasses.replace(
      self,
      targets={kind: keys[rows] for kind, keys in self.targets.items()},
      **{k: None if v is None else v[rows] for k, v in values.items()},
    )


def plain_targets(
  query: np.ndarray, earlier: np.ndarray
) -> dict[str, np.ndarray]:
  """The keys of all plain kinds.

  Args:
    query: `[example]` positions, at least 1.
    earlier: `[example]` where the query's token stood before; -1 for nowhere.
  """
  column, before = np.asarray(query)[:, None], np.asarray(earlier)[:, None]
  local = column - np.arange(2, 6)
  return {
    "induction": np.where(before >= 0, before + 1, NOWHERE),
    "previous": column - 1,
    "duplicate": before,
    "first": np.zeros_like(column),
    "self": column,
    "local": np.where(local >= 0, local, NOWHERE),
  }


def eligible(probe: Probe, *, targets: bool) -> np.ndarray:
  """`[example, pos]` bool: keys that stand for no kind by their place.

  Those before the query that are not the first token, the token before the
  query, or local.

  Args:
    probe: the rows.
    targets: whether keys that the rows' tokens mark (induction, duplicate and
      names) are eligible all the same.
  """
  line = np.arange(probe.tokens.shape[1])[None]
  found = (line > 0) & (line < probe.query[:, None])
  by_place = ("previous", "local")
  for kind, keys in probe.targets.items():
    if kind in by_place or not targets:
      rows, columns = np.nonzero(keys >= 0)
      found[rows, keys[rows, columns]] = False
  return found


def baseline_keys(probe: Probe, *, seed: int = 0) -> np.ndarray:
  """`[example, 50]` random keys that the baseline is the mean of, -1 for none.

  Rows with one and the same query share one draw, as in the source; other
  rows each have one of their own, which leaves out every target too.

  Args:
    probe: the rows.
    seed: of the draws.

  Source: paper B, the released screens.
  """
  random = np.random.RandomState(seed)
  if (probe.query == probe.query[0]).all():
    free = eligible(probe, targets=True)[0]
    keys = _source_draw(random, free, int(probe.query[0]))
    return np.tile(keys, (len(probe), 1))
  found = np.full((len(probe), _BASELINE), NOWHERE)
  for row, free in zip(found, eligible(probe, targets=False), strict=True):
    keys = np.flatnonzero(free)
    chosen = random.permutation(keys)[:_BASELINE]
    row[: len(chosen)] = chosen
  check(
    bool((found[:, 0] >= 0).all()),
    "probe",
    f"{(found[:, 0] < 0).sum()} rows without a key that stands for no kind",
    "at least one such key before every query",
    "take longer rows",
  )
  return found


def _source_draw(random, free: np.ndarray, query: int) -> list[int]:
  """Different keys, in the order in which the source accepts them."""
  wanted, keys = min(_BASELINE, int(free.sum())), []
  while len(keys) < wanted:
    key = random.randint(1, query)
    if free[key] and key not in keys:
      keys.append(key)
  return keys
