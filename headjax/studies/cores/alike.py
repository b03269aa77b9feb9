"""Do models order the same prompts alike along their axes?

Models have axes in streams of other widths, so what is compared is the order of
prompts: Spearman's rho of their coordinates. Only texts that every model's
tokenizer can write take part. Any two axes that separate the numbers correlate,
since plural subjects lie on one side in both; so rho is told within the numbers
as well, where it says more than the label. Beside both stands what 97.5% of
permutations stay below in size, of all prompts and of those within a number.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headjax.data.pairs import PromptPairs, pad_right
from headjax.models.tokenizers import Tokenizer
from headjax.statistics.rank_correlation import (
  permuted,
  rank_correlation,
  within_groups,
)
from headjax.studies.cores.number_axis import (
  PLURAL_SUBJECT,
  SINGULAR_SUBJECT,
  is_plural,
  verb_tokens,
)

LEAST = 8  # prompts


def shared_texts(
  tokenizers: Sequence[Tokenizer], pairs: Sequence[PromptPairs]
) -> dict[str, bool]:
  """The prompts that all tokenizers can write, and whether each is plural.

  Args:
    tokenizers: one a model.
    pairs: the prompts of each model.

  Returns:
    Text -> whether its subject is plural, those of the first model first.
  """
  found = {}
  for tokenizer, some in zip(tokenizers, pairs, strict=True):
    lengths = some.lengths.tolist()
    for row, n, plural in zip(
      some.clean, lengths, is_plural(some), strict=True
    ):
      found.setdefault(tokenizer.decode(row[:n].tolist()), bool(plural))
  for one in tokenizers:
    found = written_by(one, found)
  return found


def written_by(
  tokenizer: Tokenizer, texts: Mapping[str, bool]
) -> dict[str, bool]:
  """Those of the texts that a tokenizer gives back as they are."""
  return {
    text: plural
    for text, plural in texts.items()
    if tokenizer.decode(tokenizer.encode(text)) == text
  }


def as_pairs(tokenizer: Tokenizer, texts: Mapping[str, bool]) -> PromptPairs:
  """The texts of `shared_texts` as a model's own prompts.

  Their reference prompts are themselves: only coordinates are read.
  """
  rows, lengths = pad_right([tokenizer.encode(text) for text in texts])
  verbs = verb_tokens(tokenizer)
  plural = np.array(list(texts.values()))
  are, is_ = verbs["plural"][0], verbs["singular"][0]
  return PromptPairs(
    rows, rows, np.where(plural, are, is_), np.where(plural, is_, are), lengths,
    name="sva", split="shared",
    condition=np.where(plural, PLURAL_SUBJECT, SINGULAR_SUBJECT),
  )  # fmt: skip


def pair_rows(
  coordinates: Mapping[str, np.ndarray],
  plural: np.ndarray,
  *,
  draws: int = 1000,
  seed: int = 0,
) -> list[dict[str, Any]]:
  """One row a pair of models: Spearman's rho of the same prompts.

  Args:
    coordinates: model -> `[example]`.
    plural: `[example]` bool.
    draws: permutations.
    seed: of the first of them.

  Returns:
    `spearman` and `within` (the mean of both numbers), and beside each the size
    that 97.5% of permutations stay below.
  """
  rows, everything = [], np.zeros(len(plural), int)
  for a, b in itertools.combinations(coordinates, 2):
    x, y = coordinates[a], coordinates[b]
    chance = [
      np.quantile(np.abs(permuted(x, y, groups, draws, seed)), 0.975)
      for groups in (everything, plural)
    ]
    rows.append(
      {
        "models": f"{a} {b}",
        "prompts": len(plural),
        "spearman": rank_correlation(x, y),
        "permuted": float(chance[0]),
        "within": within_groups(x, y, plural[:, None]).median,
        "permuted within": float(chance[1]),
      }
    )
  return rows


def matrix_rows(
  rows: Sequence[Mapping[str, Any]], names: Sequence[str], field: str
) -> list[dict[str, Any]]:
  """A field of `pair_rows` as a matrix, one row a model."""
  found = {}
  for row in rows:
    a, b = row["models"].split()
    found[a, b] = found[b, a] = row[field]
  return [
    {"model": a} | {b: found.get((a, b), 1.0) for b in names} for a in names
  ]
