"""How are thousands of random draws made in bounded memory, and counted?

Draws come in chunks from one generator, in order, so they do not depend on
the size of a chunk.
"""

from collections.abc import Callable, Iterator

import numpy as np

from headjax.checks import check, check_choice

_CHUNK_BYTES = 32 * 2**20
# Equal tables summed in another order differ in the last bits. Without the
# slack such ties would count or not by accident.
_TIE = 1e-10


def chunk_sizes(draws: int, bytes_per_draw: int) -> Iterator[int]:
  """Sizes of chunks that add up to `draws` and stay within the budget.

  Args:
    draws: how many draws are wanted; at least 1.
    bytes_per_draw: what one draw occupies, in bytes.

  Raises:
    ValueError: if `draws` is not positive.

  Examples:
    >>> list(chunk_sizes(5, 2**24))
    [2, 2, 1]
  """
  check(draws >= 1, "draws", draws, "at least 1", "ask for more draws")
  size = max(1, _CHUNK_BYTES // bytes_per_draw)
  for start in range(0, draws, size):
    yield min(size, draws - start)


def permuted_null(
  statistic: Callable[[np.ndarray], np.ndarray],
  table: np.ndarray,
  *,
  draws: int,
  seed: int,
) -> np.ndarray:
  """A statistic under permutations of the heads, independent in each layer.

  Args:
    statistic: maps `[draw, layer, head]` to `[draw]`.
    table: `[layer, head]`.
    draws: how many permuted tables.
    seed: of the generator; equal seeds give equal permutations.

  Returns:
    `[draw]` values.

  Examples:
    >>> first = lambda tables: tables[:, 0, 0]
    >>> np.unique(permuted_null(first, np.eye(2), draws=20, seed=0))
    array([0., 1.])

  Source: paper A, sections 4 and 5.2.
  """
  table = np.asarray(table, np.float64)
  generator = np.random.default_rng(seed)
  null = []
  for size in chunk_sizes(draws, 4 * table.nbytes):
    tables = np.broadcast_to(table, (size, *table.shape))
    null.append(statistic(generator.permuted(tables, axis=-1)))
  return np.concatenate(null)


def p_value(null: np.ndarray, observed: float, *, tail: str) -> float:
  """One-sided permutation p: `(1 + #as extreme) / (1 + #draws)`.

  Args:
    null: `[draw]` values under the null.
    observed: the value in question; nan gives nan.
    tail: "lower" counts values at most `observed`, "upper" at least. Values
      that differ by rounding are equal.

  Returns:
    The p-value, in [1 / (1 + draws), 1].

  Raises:
    ValueError: for another tail.

  Examples:
    >>> p_value(np.array([1.0, 2.0, 3.0]), 3.0, tail="upper")
    0.5
  """
  check_choice("tail", tail, ("lower", "upper"))
  if np.isnan(observed):
    return float("nan")
  slack = _TIE * abs(observed)
  if tail == "lower":
    extreme = np.count_nonzero(null <= observed + slack)
  else:
    extreme = np.count_nonzero(null >= observed - slack)
  return (1 + int(extreme)) / (1 + len(null))
