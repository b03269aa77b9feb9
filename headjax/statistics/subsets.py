"""Does a statistic hold within conditions, and without any one group?"""

import dataclasses

import numpy as np

from headjax.checks import check
from headjax.outline import of_fields, table_of_fields
from headjax.statistics.effects import as_effects
from headjax.statistics.resampling import Statistic, evaluate


@dataclasses.dataclass(frozen=True)
class LeftOut:
  """A statistic when one group of examples at a time is left out.

  Attributes:
    estimate: the statistic of all examples.
    values: group label to the statistic without that group.
    largest_change: the largest |value - estimate| / |estimate|; nan if the
      estimate is 0 or nan, or a value is nan.
  """

  estimate: float
  values: dict
  largest_change: float

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def by_condition(
  statistic: Statistic, effects, condition, *, of: str = "mean"
) -> dict:
  """The statistic within each condition.

  Args:
    statistic: as in `bootstrap`; here it sees one table at a time.
    effects: `[example, layer, head]` logit differences.
    condition: `[example]` labels.
    of: what the statistic takes, "mean" or "effects".

  Returns:
    Condition label, ascending, to the statistic of its examples.

  Raises:
    ValueError: for a wrong table, or if there is not one label per example.

  Examples:
    >>> total = lambda e: np.abs(e).sum(axis=(-2, -1))
    >>> effects = np.array([1.0, 2.0, 4.0]).reshape(3, 1, 1)
    >>> by_condition(total, effects, [0, 1, 1])
    {0: 1.0, 1: 3.0}

  Source: paper A, appendix C (robustness of Neff, iii).
  """
  effects = as_effects(effects)
  labels = _labels("condition", condition, len(effects))
  return {
    label: _plain(evaluate(statistic, effects[labels == label], of))
    for label in np.unique(labels).tolist()
  }


def leave_one_group_out(
  statistic: Statistic, effects, group, *, of: str = "mean"
) -> LeftOut:
  """The statistic without each group of examples in turn.

  A difference between two models is the difference of their `values`.

  Args:
    statistic: as in `bootstrap`, with one number as its result.
    effects: `[example, layer, head]` logit differences.
    group: `[example]` labels, such as the lexical group of the prompt.
    of: what the statistic takes, "mean" or "effects".

  Returns:
    The values by label, ascending, and the largest relative change.

  Raises:
    ValueError: for a wrong table, labels that are not one per example, fewer
      than two groups, or a statistic that is no single number.

  Examples:
    >>> total = lambda e: np.abs(e).sum(axis=(-2, -1))
    >>> effects = np.array([1.0, 1.0, 4.0]).reshape(3, 1, 1)
    >>> leave_one_group_out(total, effects, ["cat", "cat", "dog"])
    LeftOut(estimate=2.0, values={'cat': 4.0, 'dog': 1.0}, largest_change=1.0)

  Source: paper A, section 5.2 and appendix C.
  """
  effects = as_effects(effects)
  labels = _labels("group", group, len(effects))
  names = np.unique(labels).tolist()
  check(len(names) > 1, "group", names, "two or more groups", "add examples")
  estimate = evaluate(statistic, effects, of)
  check(
    estimate.ndim == 0,
    "statistic",
    f"a result of shape {estimate.shape}",
    "one number",
    "reduce it, or call once per number",
  )
  values = {
    name: float(evaluate(statistic, effects[labels != name], of))
    for name in names
  }
  change = np.abs(np.array(list(values.values())) - estimate).max()
  relative = change / abs(estimate) if estimate else np.nan
  return LeftOut(float(estimate), values, float(relative))


def _labels(field: str, labels, n: int) -> np.ndarray:
  """`[example]` labels, or a refusal."""
  labels = np.asarray(labels)
  check(
    labels.shape == (n,),
    field,
    f"shape {labels.shape}",
    f"one label for each of {n} examples",
    "pass the labels of the same examples",
  )
  return labels


def _plain(value: np.ndarray):
  """A float where there are no axes."""
  return float(value) if value.ndim == 0 else value
