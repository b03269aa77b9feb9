"""Is a mean more than chance, whatever its distribution? Random signs tell.

If a value is as likely as its negative, so is every other choice of signs.
Values that share something, such as prompts of one rule, change sign together.
"""

import numpy as np

from headjax.checks import check
from headjax.statistics.draws import chunk_sizes

# Sums in another order differ in the last bits: such ties count.
_TIE = 1e-10


def sign_flip_p(
  values, *, draws: int = 10_000, seed: int = 0, group=None
) -> np.ndarray:
  """Two-sided p of means under random signs of the examples.

  All columns see the same signs. For a single column the size of its mean and
  of its t statistic order the draws alike, so this is the test of both.

  Args:
    values: `[example, ...]`, symmetric around 0 under the null.
    draws: how many choices of signs.
    seed: of the signs.
    group: `[example]` labels; a group changes its sign as a whole. None lets
      every example change alone.

  Returns:
    `[...]` p: `(1 + draws at least as large) / (1 + draws)`.

  Raises:
    ValueError: values that are not finite, labels that do not fit, or fewer
      than two groups.

  Examples:
    >>> values = np.ones((30, 2)) * [1.0, 0.0]
    >>> sign_flip_p(values, draws=999)
    array([0.001, 1.   ])

  Source: Fisher (1935), section 21; paper C names a permutation-based false
    discovery rate.
  """
  values = np.asarray(values, np.float64)
  check(
    bool(np.isfinite(values).all()),
    "values",
    "values that are not finite",
    "finite values",
    "leave these examples out",
  )
  sums = _group_sums(values.reshape(len(values), -1), group)
  check(
    len(sums) >= 2,
    "values",
    f"{len(sums)} group",
    "2 or more that change sign alone",
    "measure more prompts",
  )
  observed = np.abs(sums.sum(axis=0)) * (1 - _TIE)
  generator = np.random.default_rng(seed)
  extreme = np.zeros(sums.shape[1], np.int64)
  for size in chunk_sizes(draws, 8 * (len(sums) + 2 * sums.shape[1])):
    signs = generator.choice([-1.0, 1.0], (size, len(sums)))
    extreme += (np.abs(signs @ sums) >= observed).sum(axis=0)
  return ((1 + extreme) / (1 + draws)).reshape(values.shape[1:])


def _group_sums(values: np.ndarray, group) -> np.ndarray:
  """`[group, column]` sums of `[example, column]`."""
  if group is None:
    return values
  group = np.asarray(group)
  check(
    group.shape == values.shape[:1],
    "group",
    f"shape {group.shape}",
    f"one label for each of {len(values)} examples",
    "pass the labels of the same examples",
  )
  labels, index = np.unique(group, return_inverse=True)
  sums = np.zeros((len(labels), values.shape[1]))
  np.add.at(sums, index, values)
  return sums
