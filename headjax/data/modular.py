"""Which sums modulo a prime are learned from, and which are kept back?"""

from typing import NamedTuple

import numpy as np

from headjax.checks import check
from headjax.outline import of_fields, table_of_fields


class Additions(NamedTuple):
  """All sums a + b = c modulo p, as tokens, in two parts.

  Attributes:
    train: `[n, 3]` int32 rows a, b, c.
    test: the others.
  """

  train: np.ndarray
  test: np.ndarray

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def additions(p: int, *, share: float = 0.5, seed: int = 42) -> Additions:
  """Splits the p * p sums at random.

  Args:
    p: the modulus, at least 3.
    share: that is trained on.
    seed: of the split.

  Source: paper D's code: half of the sums in the order of this generator.
  """
  check(p >= 3, "p", p, "at least 3", "choose a larger modulus")
  check(0 < share < 1, "share", share, "between 0 and 1", "keep some back")
  a, b = np.divmod(np.arange(p * p), p)
  rows = np.stack([a, b, (a + b) % p], axis=1).astype(np.int32)
  order = np.random.RandomState(seed).permutation(len(rows))
  n = int(share * len(rows))
  return Additions(rows[order[:n]], rows[order[n:]])
