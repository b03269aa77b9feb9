"""How sure is a statistic of effects, given these examples? The bootstrap.

Examples are resampled with replacement. A resample depends on the number of
examples and on the seed alone, so two models measured on the same examples
are compared on the same resamples.
"""

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from headjax.checks import check, check_choice
from headjax.outline import of_fields, table_of_fields
from headjax.statistics.draws import chunk_sizes
from headjax.statistics.effects import as_effects, mean_effect

Statistic = Callable[[np.ndarray], np.ndarray]
INPUTS = ("effects", "mean")


@dataclasses.dataclass(frozen=True)
class Interval:
  """A statistic and its percentile interval.

  Attributes:
    estimate: the statistic of all examples; `float`, or an array.
    low: lower end, of the shape of `estimate`.
    high: upper end.
  """

  estimate: float | np.ndarray
  low: float | np.ndarray
  high: float | np.ndarray

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def evaluate(statistic: Statistic, effects: np.ndarray, of: str) -> np.ndarray:
  """The statistic of one table `[example, layer, head]`, as an array."""
  check_choice("of", of, INPUTS)
  argument = mean_effect(effects) if of == "mean" else effects
  return np.asarray(statistic(argument), np.float64)


def bootstrap(
  statistic: Statistic,
  effects,
  *,
  draws: int = 2000,
  seed: int = 0,
  level: float = 0.95,
  of: str = "mean",
) -> Interval:
  """A percentile bootstrap interval over examples.

  Args:
    statistic: with `of="mean"`, maps mean effects `[..., layer, head]` to
      `[...]` or `[..., more]`, all resamples at once (`neff`, `lane_score`).
      With `of="effects"`, maps one resampled `[example, layer, head]` to a
      number or array; called once per resample, for what is no function of
      the mean.
    effects: `[example, layer, head]` logit differences.
    draws: number of resamples.
    seed: of the resamples.
    level: coverage, between 0 and 1.
    of: what the statistic takes, "mean" or "effects".

  Returns:
    The interval; nan where the statistic is nan in some resample.

  Raises:
    ValueError: for a wrong table or fewer than 2 examples, or a statistic that
      does not keep the leading axis.

  Examples:
    >>> total = lambda e: np.abs(e).sum(axis=(-2, -1))
    >>> effects = np.array([1.0, 2.0, 3.0, 4.0]).reshape(4, 1, 1)
    >>> bootstrap(total, effects)
    Interval(estimate=2.5, low=1.5, high=3.5)

  Source: paper A, appendix C (robustness of Neff, ii).
  """
  effects = as_effects(effects)
  tails = _tails(level)
  estimate = evaluate(statistic, effects, of)
  values = _resampled(statistic, effects, draws, seed, of)
  return _interval(estimate, values, tails)


def resampled(
  statistic: Statistic,
  effects,
  *,
  draws: int = 2000,
  seed: int = 0,
  of: str = "mean",
) -> np.ndarray:
  """A statistic of every resample, for comparisons of many models.

  The difference of two models' values is what `paired_difference` takes its
  interval from; here each model is resampled once for all comparisons.

  Args:
    statistic: as in `bootstrap`.
    effects: `[example, layer, head]` logit differences.
    draws: number of resamples.
    seed: of the resamples; equal seeds and numbers of examples give equal
      resamples.
    of: what the statistic takes, "mean" or "effects".

  Returns:
    `[draw, ...]`.

  Examples:
    >>> resampled(lambda e: e[..., 0, 0], np.ones((3, 1, 1)), draws=2)
    array([1., 1.])
  """
  return _resampled(statistic, as_effects(effects), draws, seed, of)


def percentiles(values: np.ndarray, level: float = 0.95) -> tuple[float, float]:
  """The two percentiles of `[draw]` values that enclose a level.

  Examples:
    >>> percentiles(np.arange(101.0), 0.5)
    (25.0, 75.0)
  """
  low, high = np.quantile(values, _tails(level), axis=0)
  return float(low), float(high)


def paired_difference(
  statistic: Statistic,
  effects_a,
  effects_b,
  *,
  draws: int = 2000,
  seed: int = 0,
  level: float = 0.95,
  of: str = "mean",
) -> Interval:
  """An interval of `statistic(a) - statistic(b)`, resampled together.

  Args:
    statistic: as in `bootstrap`.
    effects_a: `[example, layer, head]` of one model.
    effects_b: `[example, layer, head]` of another model on the same examples
      in the same order; it may have other numbers of layers and heads.
    draws: number of resamples, each used for both models.
    seed: of the resamples.
    level: coverage, between 0 and 1.
    of: what the statistic takes, "mean" or "effects".

  Returns:
    The interval of the difference.

  Raises:
    ValueError: as in `bootstrap`, or if the numbers of examples differ.

  Examples:
    >>> total = lambda e: np.abs(e).sum(axis=(-2, -1))
    >>> a = np.array([1.0, 2.0, 3.0, 4.0]).reshape(4, 1, 1)
    >>> paired_difference(total, a, a - 1)
    Interval(estimate=1.0, low=1.0, high=1.0)

  Source: paper A, section 5.2 and appendix C.
  """
  a = as_effects(effects_a, "effects_a")
  b = as_effects(effects_b, "effects_b")
  check(
    len(a) == len(b),
    "effects_b",
    f"{len(b)} examples",
    f"{len(a)} as in effects_a",
    "measure both models on the same examples",
  )
  tails = _tails(level)
  estimate = evaluate(statistic, a, of) - evaluate(statistic, b, of)
  values = _resampled(statistic, a, draws, seed, of)
  values = values - _resampled(statistic, b, draws, seed, of)
  return _interval(estimate, values, tails)


def head_intervals(
  effects, *, draws: int = 2000, seed: int = 0, level: float = 0.95
) -> Interval:
  """A percentile bootstrap interval of every head's mean effect.

  Args:
    effects: `[example, layer, head]` logit differences.
    draws: number of resamples.
    seed: of the resamples.
    level: coverage of each interval alone, between 0 and 1.

  Returns:
    Interval with `[layer, head]` arrays.

  Raises:
    ValueError: as in `bootstrap`.

  Examples:
    >>> head_intervals([[[1.0, 2.0]], [[1.0, 4.0]]]).high
    array([[1., 4.]])
  """
  return bootstrap(lambda e: e, effects, draws=draws, seed=seed, level=level)


def _resamples(n: int, draws: int, seed: int, row_bytes: int) -> Iterator:
  """`[draw, example]` how often each example is drawn, chunk by chunk."""
  generator = np.random.default_rng(seed)
  for size in chunk_sizes(draws, row_bytes):
    yield generator.multinomial(n, np.full(n, 1 / n), size=size)


def _resampled(statistic, effects, draws, seed, of) -> np.ndarray:
  """`[draw, ...]` the statistic of every resample."""
  n, *shape = effects.shape
  check(n >= 2, "effects", f"{n} example", "2 or more", "measure more examples")
  row_bytes = 8 * (2 * n + 4 * effects[0].size)
  values = []
  for counts in _resamples(n, draws, seed, row_bytes):
    if of == "effects":
      rows = (np.repeat(effects, count, axis=0) for count in counts)
      values.append(np.stack([evaluate(statistic, row, of) for row in rows]))
      continue
    means = (counts @ effects.reshape(n, -1)) / n
    value = np.asarray(statistic(means.reshape(-1, *shape)), np.float64)
    check(
      value.shape[:1] == counts.shape[:1],
      "statistic",
      f"a result of shape {value.shape}",
      f"a leading axis of {len(counts)} resamples",
      'reduce the last axes only, or set of="effects"',
    )
    values.append(value)
  return np.concatenate(values)


def _tails(level: float) -> tuple[float, float]:
  """The two probabilities that enclose a level."""
  check(0 < level < 1, "level", level, "between 0 and 1", "try 0.95")
  return (1 - level) / 2, (1 + level) / 2


def _interval(estimate, values, tails) -> Interval:
  """The percentiles of `[draw, ...]` values around an estimate."""
  ends = (estimate, *np.quantile(values, tails, axis=0))
  return Interval(*(float(x) if np.ndim(x) == 0 else x for x in ends))
