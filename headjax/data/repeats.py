"""On which tokens do induction heads show? Random ones, said twice."""

import numpy as np

from headjax.checks import check


def repeated(
  d_vocab: int,
  n_examples: int = 4,
  length: int = 50,
  *,
  seed: int = 0,
  bos: int | None = None,
) -> np.ndarray:
  """Random tokens, each row twice in a row.

  Args:
    d_vocab: of the model. Its first hundredth, where special tokens are, is
      not drawn from.
    n_examples: rows.
    length: tokens before they are repeated.
    seed: of the draws.
    bos: id that begins each row, or None.

  Returns:
    `[example, pos]` int32 ids, 2 `length` wide, and 1 more with `bos`.
  """
  check(
    length >= 1 and n_examples >= 1,
    "length, n_examples",
    f"{length}, {n_examples}",
    "at least 1",
    "ask for some tokens",
  )
  rng = np.random.default_rng(seed)
  first = -(-d_vocab // 100) if d_vocab > 100 else 0
  ids = rng.integers(first, d_vocab, (n_examples, length), np.int32)
  start = [] if bos is None else [np.full((n_examples, 1), bos, np.int32)]
  return np.hstack([*start, ids, ids])
