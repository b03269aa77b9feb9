"""Do lanes form only where head indices share something across layers?

In a half-shared design some head indices keep one write space in all layers
and the others change it from layer to layer. Each half of the heads has a lane
score of its own, and their difference is tested within one model.
"""

import dataclasses

import numpy as np

from headjax.checks import check
from headjax.outline import of_fields, table_of_fields
from headjax.statistics.draws import p_value, permuted_null
from headjax.statistics.effects import as_effects, mean_effect
from headjax.statistics.lanes import lane_score


@dataclasses.dataclass(frozen=True)
class HalfLanes:
  """The lane scores of two halves of the head indices.

  Attributes:
    shared: Lambda over pairs of heads that both have a shared index.
    rotating: the same for the other indices.
    difference: `shared - rotating`; like them nan where a half has fewer than
      two layers with a positive effect, and then `p` is nan too.
    p: upper-tail p of the difference when the heads of each layer are permuted
      within their half.
    chance_shared: mean of `shared` under these permutations, 1 / its indices.
    chance_rotating: the same for the other half.
    draws: number of permutations.
  """

  shared: float
  rotating: float
  difference: float
  p: float
  chance_shared: float
  chance_rotating: float
  draws: int

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def half_lanes(
  effects, shared, *, draws: int = 5000, seed: int = 0
) -> HalfLanes:
  """Compares the lane scores within two halves of the head indices.

  Args:
    effects: `[example, layer, head]` logit differences, clean minus patched;
      of the discovery split.
    shared: `[head]` bool, which indices share their space across layers.
    draws: permutations for the null.
    seed: of the permutations.

  Returns:
    Both scores, their difference and its permutation p.

  Raises:
    ValueError: if `effects` is no finite table with these axes, or `shared`
      does not part its heads in two.

  Examples:
    >>> effects = np.zeros((2, 3, 4))
    >>> effects[:, :, 0] = 1.0
    >>> effects[:, [0, 1, 2], [1, 3, 1]] = 1.0
    >>> found = half_lanes(effects, [True, False, True, False], draws=200)
    >>> found.shared, round(found.rotating, 3), round(found.difference, 3)
    (1.0, 0.333, 0.667)

  Source: paper A, section 7, the half-shared control; the score is that of its
    section 4, over the pairs inside a half.
  """
  e = mean_effect(as_effects(effects))
  shared = np.asarray(shared, bool)
  check(
    shared.shape == e.shape[1:] and shared.any() and not shared.all(),
    "shared",
    f"{int(shared.sum())} of {shared.size} indices",
    f"some but not all of {e.shape[1]} heads",
    "say which head indices share their space across layers",
  )
  halves = e[:, shared], e[:, ~shared]
  scores = [float(lane_score(half)) for half in halves]
  nulls = [
    permuted_null(lane_score, half, draws=draws, seed=seed + i)
    for i, half in enumerate(halves)
  ]
  difference = scores[0] - scores[1]
  return HalfLanes(
    shared=scores[0],
    rotating=scores[1],
    difference=difference,
    p=p_value(nulls[0] - nulls[1], difference, tail="upper"),
    chance_shared=1 / halves[0].shape[1],
    chance_rotating=1 / halves[1].shape[1],
    draws=draws,
  )
