"""Which share of a swing does a part carry? Means of ratios, resampled.

A ratio is taken for each pair of prompts whose swing is large enough; small
swings would make it explode.
"""

import dataclasses

import numpy as np

from headjax.checks import check
from headjax.outline import of_fields, table_of_fields
from headjax.statistics.resampling import percentiles, resampled


@dataclasses.dataclass(frozen=True)
class Ratios:
  """Mean ratios of several parts, and how sure they are.

  Attributes:
    mean: `[part]`; nan, like all others, with fewer than two valid pairs.
    low: `[part]`, lower end of the percentile interval.
    high: `[part]`, upper end.
    p: `[part]` two-sided bootstrap p of a mean of 0.
    valid: `[pair]` whose ratio counts.
    draws: `[draw, part]` means of the resamples.
  """

  mean: np.ndarray
  low: np.ndarray
  high: np.ndarray
  p: np.ndarray
  valid: np.ndarray
  draws: np.ndarray

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def mean_ratios(
  parts,
  whole,
  *,
  threshold: float = 0.5,
  draws: int = 10_000,
  seed: int = 0,
  level: float = 0.95,
) -> Ratios:
  """The mean over pairs of `part / whole`, where `whole >= threshold`.

  Args:
    parts: `[pair, part]` in logits.
    whole: `[pair]` the swing of each pair, in logits, with its sign.
    threshold: what a swing is at least, in logits; positive.
    draws: resamples of the valid pairs, the same for all parts.
    seed: of the resamples.
    level: coverage of the intervals.

  Returns:
    The means; undefined, not refused, where fewer than two pairs are valid.

  Raises:
    ValueError: shapes that do not fit, values that are not finite, or a
      threshold that is not positive.

  Examples:
    >>> found = mean_ratios([[0.5], [1.0], [9.0]], [1.0, 1.0, 0.1], draws=99)
    >>> found.mean, found.valid
    (array([0.75]), array([ True,  True, False]))

  Source: paper C, direct share of the swing; its released figures are means
    of ratios, not ratios of means.
  """
  parts = np.asarray(parts, np.float64)
  whole = np.asarray(whole, np.float64)
  check(
    parts.ndim == 2 and whole.shape == parts.shape[:1],
    "parts",
    f"shape {parts.shape} beside {whole.shape} swings",
    "[pair, part] and [pair]",
    "pass the parts of the same pairs",
  )
  check(
    bool(np.isfinite(parts).all() and np.isfinite(whole).all()),
    "parts",
    "values that are not finite",
    "finite logits",
    "leave these pairs out",
  )
  check(threshold > 0, "threshold", threshold, "above 0", "try 0.5")
  valid = whole >= threshold
  ratios = parts[valid] / whole[valid, None]
  if len(ratios) < 2:
    nothing = np.full(parts.shape[1], np.nan)
    return Ratios(*[nothing] * 4, valid, np.full((draws, len(nothing)), np.nan))
  means = resampled(
    lambda table: table[..., 0, :], ratios[:, None], draws=draws, seed=seed
  )
  ends = [percentiles(column, level) for column in means.T]
  low, high = np.array(ends).reshape(-1, 2).T
  return Ratios(ratios.mean(axis=0), low, high, zero_p(means), valid, means)


def zero_p(draws) -> np.ndarray:
  """`[...]` two-sided p that 0 has among `[draw, ...]` bootstrap values.

  Examples:
    >>> zero_p([1.0, 2.0, -1.0, 3.0])
    np.float64(0.5)

  Source: paper C, twice the smaller tail, without a 1 added: no draw beyond 0
    gives 0.
  """
  draws = np.asarray(draws)
  tails = [(draws <= 0).mean(axis=0), (draws >= 0).mean(axis=0)]
  return np.minimum(1.0, 2 * np.minimum(*tails))
