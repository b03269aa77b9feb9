"""Which pairs of heads matter? Those among the heads with the largest effects.

A pair goes from an earlier layer to a later one; heads of one layer are none.
Heads that were chosen on the data on which the pair is then measured are
chosen again on the discovery split, and the agreement is told.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import percentileofscore

from headjax.checks import check
from headjax.statistics.lanes import confirm_heads


class Head(NamedTuple):
  """Where a head is, both from 0."""

  layer: int
  head: int


class HeadPair(NamedTuple):
  """A head and a later one that may read what it writes; all from 0."""

  source_layer: int
  source_head: int
  layer: int
  head: int


def top_heads(effects, count: int = 3) -> tuple[Head, ...]:
  """The heads with the largest mean effects, in falling order.

  Args:
    effects: `[example, layer, head]` logit differences, clean minus patched.
    count: how many.

  Examples:
    >>> top_heads([[[0.1, 2.0], [1.0, -3.0]]], 2)
    (Head(layer=0, head=1), Head(layer=1, head=0))

  Source: paper A, section 5.1.
  """
  found = confirm_heads(effects, effects, count=count)
  return tuple(Head(head.layer, head.head) for head in found)


def ordered_pairs(heads: Sequence[Head]) -> tuple[HeadPair, ...]:
  """All pairs of them from an earlier layer to a later one.

  Examples:
    >>> ordered_pairs([Head(2, 0), Head(1, 3), Head(2, 1)])[0]
    HeadPair(source_layer=1, source_head=3, layer=2, head=0)
  """
  return tuple(
    HeadPair(*first, *second)
    for first, second in itertools.product(sorted(heads), repeat=2)
    if first.layer < second.layer
  )


def agreement(first: Sequence[Head], second: Sequence[Head]) -> int:
  """How many heads are in both choices."""
  return len(set(first) & set(second))


def percentile(population: np.ndarray, value: float) -> float:
  """How much of a population is smaller, in percent; ties count by half.

  Args:
    population: of any shape, `value` among it; NaN are no members.
    value: whose place is asked for.

  Returns:
    Above 0 and below 100; NaN if the value is.

  Raises:
    ValueError: the population has no members.

  Examples:
    >>> percentile([1.0, 2.0, 3.0, 4.0], 4.0)
    87.5
  """
  population = np.asarray(population, np.float64)
  population = population[~np.isnan(population)]
  check(
    len(population) > 0,
    "population",
    "no values",
    "at least one that is not NaN",
    "compare a value with those that it belongs to",
  )
  if np.isnan(value):
    return float("nan")
  return float(percentileofscore(population, value, kind="mean"))
