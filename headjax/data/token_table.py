"""Which tokens are these ids? Prompts as tables, text beside ids."""

import dataclasses
import html
from collections.abc import Sequence

import numpy as np

from headjax.checks import check, fail
from headjax.data.pairs import PromptPairs
from headjax.data.tasks import check_tokenizer
from headjax.models.tokenizers import Tokenizer


@dataclasses.dataclass(frozen=True, repr=False)
class TokenTable:
  """Prompts as rows of tokens; a table in a notebook, lines elsewhere.

  Attributes:
    rows: (label, ids, texts) of each prompt, ids and texts `[pos]`.
    marked: for each row the positions to point out.
  """

  rows: tuple[tuple[str, tuple[int, ...], tuple[str, ...]], ...]
  marked: tuple[frozenset[int], ...]

  def __repr__(self) -> str:
    """A line a prompt; marked tokens have a star."""
    lines = []
    for (label, ids, texts), marked in zip(self.rows, self.marked, strict=True):
      cells = [
        f"{text!r} {i}{'*' if pos in marked else ''}"
        for pos, (i, text) in enumerate(zip(ids, texts, strict=True))
      ]
      lines.append(f"{label}: {' | '.join(cells)}")
    return "\n".join(lines)

  def _repr_html_(self) -> str:
    """The same as a table; marked tokens are bold."""
    lines = []
    for (label, ids, texts), marked in zip(self.rows, self.marked, strict=True):
      cells = [f"<th>{html.escape(label)}</th>"]
      for pos, (i, text) in enumerate(zip(ids, texts, strict=True)):
        word = f"<code>{html.escape(repr(text)[1:-1]).replace(' ', '␣')}</code>"
        word = f"<b>{word}</b>" if pos in marked else word
        cells.append(f"<td>{word}<br><small>{i}</small></td>")
      lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def show_tokens(
  tokenizer: Tokenizer | None, prompts: PromptPairs | Sequence | np.ndarray
) -> TokenTable:
  """The tokens of prompts, each beside its id.

  Args:
    tokenizer: of the model, `model.tokenizer`.
    prompts: pairs, of which clean and reference prompts, answers and foils
      are shown and what differs is marked; or ids, `[pos]` or `[example, pos]`.

  Returns:
    A table that a notebook draws; `print` it elsewhere.

  Raises:
    ValueError: there is no tokenizer, the ids have other axes, or rows of
      different lengths.

  Examples:
    >>> from headjax.data import toy_tokenizer
    >>> toy = toy_tokenizer.tokenizer()
    >>> show_tokens(toy, toy.encode("The key is"))
    0: 'The' 498 | ' key' 100 | ' is' 338
  """
  check_tokenizer(tokenizer)
  if isinstance(prompts, PromptPairs):
    return _of_pairs(tokenizer, prompts)
  ids = _ids(prompts)
  rows = tuple(_row(tokenizer, str(n), row) for n, row in enumerate(ids))
  return TokenTable(rows, (frozenset(),) * len(rows))


def _ids(prompts) -> np.ndarray:
  """Ids `[example, pos]`; prompts of different lengths make no array."""
  wanted = "PromptPairs, or ids [pos] or [example, pos]"
  try:
    ids = np.atleast_2d(np.asarray(prompts))
  except ValueError:
    fail(
      "prompts",
      "rows of different lengths",
      wanted,
      "show one at a time, or make them as long with headjax.data.pad_right",
    )
  check(
    ids.ndim == 2 and np.issubdtype(ids.dtype, np.integer),
    "prompts",
    f"{ids.dtype} of shape {ids.shape}",
    wanted,
    "encode the text first: model.tokenizer.encode(text)",
  )
  return ids


def _of_pairs(tokenizer, pairs):
  rows, marked = [], []
  for n in range(len(pairs)):
    clean, reference = (
      x[n, : pairs.lengths[n]] for x in (pairs.clean, pairs.reference)
    )
    differ = frozenset(np.flatnonzero(clean != reference).tolist())
    last = len(clean)  # the answer stands after the prompt
    for label, ids, following in (
      ("clean, answer", clean, pairs.answer[n]),
      ("reference, foil", reference, pairs.foil[n]),
    ):
      rows.append(_row(tokenizer, f"{n} {label}", [*ids, following]))
      marked.append(differ | {last})
  return TokenTable(tuple(rows), tuple(marked))


def _row(tokenizer, label, ids):
  ids = tuple(int(i) for i in ids)
  return label, ids, tuple(tokenizer.decode([i]) for i in ids)
