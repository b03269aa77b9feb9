"""Does a head write towards the answer, or would shuffled labels do as well?

Its mean attribution is compared with the means on the same prompts whose
labels are shuffled, a number of times. Which heads are then looked at closely
is decided by these tests and by size.
"""

import dataclasses

import numpy as np
from scipy import stats

from headjax.checks import check
from headjax.outline import of_fields, table_of_fields


@dataclasses.dataclass(frozen=True)
class Controlled:
  """Mean attributions against those on shuffled labels; all of one shape.

  Attributes:
    mean: over the prompts.
    standard_error: of that mean.
    shuffled_mean: mean over the shuffles of the means over the prompts.
    shuffled_sd: their standard deviation.
    refined: `mean - shuffled_mean`.
    denom: the standard error of `refined`.
    z: `refined / denom`; 0 for a head that never writes anything.
    p: two-sided, of a normal z.
  """

  mean: np.ndarray
  standard_error: np.ndarray
  shuffled_mean: np.ndarray
  shuffled_sd: np.ndarray
  refined: np.ndarray
  denom: np.ndarray
  z: np.ndarray
  p: np.ndarray

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def shuffled_control(mean, standard_error, shuffled) -> Controlled:
  """Compares means with those of shuffled labels.

  Args:
    mean: `[...]` mean attribution of each head, in logits.
    standard_error: `[...]` of these means.
    shuffled: `[shuffle, ...]` means with shuffled labels.

  Returns:
    Everything that follows from them, `[...]` each.

  Raises:
    ValueError: fewer than two shuffles, or shapes that do not fit.

  Examples:
    >>> found = shuffled_control(0.5, 0.3, [0.0, 0.2, -0.2])
    >>> round(float(found.denom), 4), round(float(found.z), 4)
    (0.3215, 1.5554)

  Source: paper C, refined direct logit attribution; the formulas are those
    that its released figures follow: ddof 1, and a normal p.
  """
  mean = np.asarray(mean, np.float64)
  error = np.asarray(standard_error, np.float64)
  shuffled = np.asarray(shuffled, np.float64)
  check(
    shuffled.ndim == mean.ndim + 1
    and shuffled.shape[1:] == mean.shape == error.shape,
    "shuffled",
    f"shape {shuffled.shape} beside means of shape {mean.shape}",
    "[shuffle, ...] for means [...]",
    "pass the means over prompts of every shuffle",
  )
  check(
    len(shuffled) >= 2,
    "shuffled",
    f"{len(shuffled)} shuffles",
    "2 or more",
    "shuffle the labels more often",
  )
  shuffled_mean, sd = shuffled.mean(axis=0), shuffled.std(axis=0, ddof=1)
  refined = mean - shuffled_mean
  denom = np.sqrt(error**2 + sd**2 / len(shuffled))
  # A head that writes nothing, ever, is no discovery, and no NaN either.
  with np.errstate(divide="ignore"):
    z = np.divide(
      refined, denom, out=np.zeros_like(refined), where=refined != 0
    )
  p = 2 * stats.norm.sf(np.abs(z))
  return Controlled(mean, error, shuffled_mean, sd, refined, denom, z, p)


def standard_error(values) -> np.ndarray:
  """`[...]` of the mean of `[example, ...]` independent values.

  Examples:
    >>> standard_error([1.0, 3.0])
    np.float64(1.0)
  """
  values = np.asarray(values, np.float64)
  check(
    len(values) >= 2,
    "values",
    f"{len(values)} example",
    "2 or more",
    "measure more prompts",
  )
  return values.std(axis=0, ddof=1) / np.sqrt(len(values))


def candidate_count(
  n_significant: int, minimum: int = 20, factor: int = 3
) -> int:
  """How many of the largest heads to look at: K.

  Examples:
    >>> candidate_count(9), candidate_count(0)
    (27, 20)

  Source: paper C, K = max(20, 3 n_FDR), as in its released figures.
  """
  return max(minimum, factor * n_significant)


def candidates(
  mean, significant, *, minimum: int = 20, factor: int = 3
) -> np.ndarray:
  """The significant heads, and the K with the largest mean attribution.

  Args:
    mean: `[...]` mean attribution, not the refined one; its size counts.
    significant: `[...]` whether each head passed its test.
    minimum: K at least.
    factor: K for every significant head.

  Returns:
    `[...]` bool. All heads where there are no more than K.

  Examples:
    >>> candidates([0.1, -0.3, 0.2], [True, False, False], minimum=1, factor=1)
    array([ True,  True, False])

  Source: paper C, as in its released figures.
  """
  mean, significant = np.asarray(mean), np.asarray(significant, bool)
  count = candidate_count(int(significant.sum()), minimum, factor)
  order = np.argsort(-np.abs(mean), axis=None, kind="stable")[:count]
  found = significant.copy()
  found.flat[order] = True
  return found
