"""What is one measurement made on? Clean and reference prompts, as ids."""

import dataclasses
import hashlib
import json
from collections.abc import Sequence

import numpy as np

from headjax.checks import check, fail
from headjax.outline import table

_ID_FIELDS = ("clean", "reference", "answer", "foil")


@dataclasses.dataclass(frozen=True, eq=False)
class PromptPairs:
  """Prompts in pairs of equal length, each with two possible next tokens.

  Arrays live on the host and are read-only. Prompts are right-padded: ids past
  the length are set to 0, so that equal content has an equal digest.

  Attributes:
    clean: `[example, pos]` int32, ids of the clean prompts.
    reference: `[example, pos]` int32, ids of the reference prompts; a prompt
      may equal its clean one.
    answer: `[example]` int32, the right next token of the clean prompt.
    foil: `[example]` int32, the next token that it is compared with.
    lengths: `[example]` int32, in tokens, of clean and reference; None means
      the full width.
    name: which task this is.
    split: which split of the task, "" if it has none.
    group: `[example]` lexical group labels for leave-one-group-out, or None.
    condition: `[example]` int32, cell 0..3 of a 2x2 design, or None.

  Examples:
    >>> PromptPairs([[5, 6, 7]], [[5, 8, 7]], answer=[1], foil=[2])
    PromptPairs(pairs: pairs 1, tokens 3, digest b310d6a33737)
  """

  clean: np.ndarray
  reference: np.ndarray
  answer: np.ndarray
  foil: np.ndarray
  lengths: np.ndarray | None = None
  name: str = "pairs"
  split: str = ""
  group: np.ndarray | None = None
  condition: np.ndarray | None = None

  def __post_init__(self):
    for field in _ID_FIELDS:
      self._set(field, _ids(field, getattr(self, field)))
    shape = self.clean.shape
    check(
      len(shape) == 2 and min(shape) >= 1,
      "clean",
      f"shape {shape}",
      "[example, pos] with at least one of each",
      "pass one row of token ids per prompt",
    )
    _check_shape("reference", self.reference, shape)
    if self.lengths is None:
      self._set("lengths", np.full(shape[0], shape[1], np.int32))
    self._set("lengths", _ids("lengths", self.lengths))
    for field in ("answer", "foil", "lengths"):
      _check_shape(field, getattr(self, field), shape[:1])
    self._check_lengths()
    padding = np.arange(shape[1]) >= self.lengths[:, None]
    for field in ("clean", "reference"):
      self._set(field, np.where(padding, np.int32(0), getattr(self, field)))
    self._set_labels(shape[:1])

  def _check_lengths(self):
    wrong = (self.lengths < 1) | (self.lengths > self.clean.shape[1])
    check(
      not wrong.any(),
      "lengths",
      f"{self.lengths[wrong.argmax()]} in example {wrong.argmax()}",
      f"1 to {self.clean.shape[1]} tokens",
      "count the tokens of the prompt without its padding",
    )

  def _set_labels(self, shape):
    if self.group is not None:
      self._set("group", np.array(self.group, dtype=np.str_))
      _check_shape("group", self.group, shape)
    if self.condition is not None:
      self._set("condition", _ids("condition", self.condition))
      _check_shape("condition", self.condition, shape)
      check(
        self.condition.max() <= 3,
        "condition",
        self.condition.max(),
        "0 to 3",
        "number the cells of the 2x2 design",
      )

  def _set(self, field, value):
    """Stores a read-only array in the frozen value."""
    value.setflags(write=False)
    object.__setattr__(self, field, value)

  def __len__(self) -> int:
    return len(self.clean)

  def __repr__(self) -> str:
    sizes = ", ".join(f"{name} {size}" for name, size in self._sizes().items())
    return f"PromptPairs({self._title()}: {sizes})"

  def _repr_html_(self) -> str:
    """The same as a table, with the ids of the first pair."""
    first = {
      field: " ".join(map(str, getattr(self, field)[0, : self.lengths[0]]))
      for field in ("clean", "reference")
    }
    first |= {
      field: str(getattr(self, field)[0]) for field in ("answer", "foil")
    }
    rows = {f"first {field}": ids for field, ids in first.items()}
    return table(self._title(), self._sizes() | rows)

  def _title(self) -> str:
    return f"{self.name}, {self.split}" if self.split else self.name

  def _sizes(self) -> dict[str, str]:
    shortest, longest = self.lengths.min(), self.lengths.max()
    tokens = f"{shortest}" + f" to {longest}" * bool(longest > shortest)
    sizes = {"pairs": str(len(self)), "tokens": tokens}
    if self.group is not None:
      sizes["groups"] = str(len(set(self.group)))
    return sizes | {"digest": self.digest[:12]}

  @property
  def n_examples(self) -> int:
    """Number of pairs."""
    return len(self)

  @property
  def answer_pos(self) -> np.ndarray:
    """`[example]` int32, the last position of the prompt, which predicts."""
    return self.lengths - 1

  @property
  def first_difference(self) -> np.ndarray:
    """`[example]` int32, first position where clean and reference differ.

    The answer position where they are equal.
    """
    differ = self.clean != self.reference
    first = np.where(differ.any(1), differ.argmax(1), self.answer_pos)
    return first.astype(np.int32)

  @property
  def digest(self) -> str:
    """The sha256, in hex, of ids, lengths, groups and conditions."""
    content = hashlib.sha256()
    for field in (*_ID_FIELDS, "lengths", "condition", "group"):
      value = getattr(self, field)
      if value is None:
        value = np.empty(0, np.int32)
      content.update(f"{field}{value.shape}".encode())
      if field == "group":
        content.update(json.dumps(value.tolist()).encode())
      else:
        content.update(value.astype("<i4").tobytes())
    return content.hexdigest()

  def check_vocabulary(self, d_vocab: int) -> None:
    """Fails if an id is not one of the `d_vocab` ids of a model."""
    for field in _ID_FIELDS:
      ids = getattr(self, field).reshape(len(self), -1)
      example, pos = np.unravel_index(ids.argmax(), ids.shape)
      check(
        ids.max() < d_vocab,
        field,
        f"id {ids[example, pos]} in example {example}",
        f"ids below {d_vocab}",
        "use the tokenizer of this model",
      )

  def check_context(self, n_ctx: int) -> None:
    """Fails if a prompt is longer than the context of a model, in tokens."""
    check(
      self.lengths.max() <= n_ctx,
      "clean",
      f"{self.lengths.max()} tokens in example {self.lengths.argmax()}",
      f"at most {n_ctx}, the context of this model",
      "shorten the prompts",
    )

  def select(
    self, indices: Sequence[int] | np.ndarray | slice
  ) -> "PromptPairs":
    """The pairs at some indices, in their order; the width stays."""
    rows = np.arange(len(self))[indices]
    fields = (*_ID_FIELDS, "lengths", "group", "condition")
    values = {field: getattr(self, field) for field in fields}
    return dataclasses.replace(
      self,
      **{k: None if v is None else v[rows] for k, v in values.items()},
    )


def pad_right(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
  """Puts prompts of different lengths into one array, filled up with 0.

  Args:
    rows: token ids, one sequence per prompt.

  Returns:
    `[example, pos]` int32 ids and `[example]` int32 lengths in tokens.
  """
  lengths = np.array([len(row) for row in rows], np.int32)
  ids = np.zeros((len(rows), lengths.max(initial=0)), np.int32)
  for row, values in zip(ids, rows, strict=True):
    row[: len(values)] = values
  return ids, lengths


def _ids(field, values):
  """A fresh int32 array of non-negative integers."""
  try:
    array = np.asarray(values)
  except ValueError:
    fail(
      field,
      "rows of different lengths",
      "one rectangular array",
      "pad the rows with pad_right and pass lengths",
    )
  check(
    np.issubdtype(array.dtype, np.integer),
    field,
    f"dtype {array.dtype}",
    "integers",
    "pass token ids, not text or floats",
  )
  wrong = (array < 0) | (array >= 2**31)
  check(
    not wrong.any(),
    field,
    array[wrong][0] if wrong.any() else None,
    "integers from 0 to 2**31 - 1",
    "pass ids of the tokenizer",
  )
  return np.array(array, np.int32)


def _check_shape(field, array, shape):
  check(
    array.shape == shape,
    field,
    f"shape {array.shape}",
    f"shape {shape}, like clean",
    "pass one row per example, clean and reference of equal length",
  )
