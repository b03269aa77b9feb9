"""What is a table of effects? `[example, layer, head]`, finite, float64.

An effect is the logit difference of the clean run minus that of the patched
run: positive where the head helped. Every statistic starts from such a table.
"""

from collections.abc import Mapping

import numpy as np

from headjax.checks import check, fail

AXES = ("example", "layer", "head")


def as_effects(effects, field: str = "effects") -> np.ndarray:
  """The table as a float64 array, or one line that says what is wrong.

  An xarray array whose dimensions carry these names in another order is
  transposed.

  Args:
    effects: `[example, layer, head]` logit differences; whatever
      `numpy.asarray` takes.
    field: what the error calls the table.

  Returns:
    `[example, layer, head]` float64.

  Raises:
    ValueError: if it is not such a table, has an empty axis or a value that
      is not finite.

  Examples:
    >>> as_effects([[[1, 2, 3]], [[4, 5, 6]]]).shape
    (2, 1, 3)
  """
  expected = "an array [example, layer, head]"
  check(
    not isinstance(effects, Mapping),
    field,
    type(effects).__name__,
    expected,
    "pass its effects, dataset.effect",
  )
  if set(getattr(effects, "dims", ())) == set(AXES):
    effects = effects.transpose(*AXES)
  try:
    table = np.asarray(effects, np.float64)
  except (TypeError, ValueError):
    got = f"{type(effects).__name__} that is no array of numbers"
    fail(field, got, expected, "pass numbers of one rectangular shape")
  check(
    table.ndim == 3 and table.size > 0,
    field,
    f"shape {table.shape}",
    expected,
    "keep all three axes and at least one entry",
  )
  bad = np.count_nonzero(~np.isfinite(table))
  check(
    bad == 0,
    field,
    f"{bad} values that are not finite",
    "finite effects",
    "find the examples whose runs overflow",
  )
  return table


def mean_effect(effects) -> np.ndarray:
  """The signed mean over examples, e.

  Args:
    effects: `[..., example, layer, head]` logit differences.

  Returns:
    `[..., layer, head]`.

  Examples:
    >>> mean_effect([[[1.0, -2.0]], [[3.0, 2.0]]])
    array([[2., 0.]])

  Source: paper A, section 4: the sign is kept inside the mean.
  """
  return np.mean(np.asarray(effects, np.float64), axis=-3)
