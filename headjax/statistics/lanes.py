"""Do the heads that matter share one index across layers? The lane score.

A lane is the set of heads with the same index in every layer. Choose lanes
and heads on the discovery split, confirm them on the evaluation split.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from headjax.checks import check
from headjax.outline import of_fields, table_of_fields
from headjax.statistics.draws import p_value, permuted_null
from headjax.statistics.effects import as_effects, mean_effect


@dataclasses.dataclass(frozen=True, repr=False)
class Lanes:
  """The lane score of a model on a task, and how surprising it is.

  Attributes:
    value: Lambda, in [0, 1]; nan if fewer than two layers hold a positive
      mean effect, and then `p`, `p_corrected` and `null_median` are nan too.
    p: upper-tail p when the heads of each layer are permuted.
    p_corrected: `min(1, n_tasks * p)`, Bonferroni over one model's tasks.
    chance: `1 / n_heads`, which is exactly the mean of the null.
    null_median: median of Lambda under the permutations.
    draws: number of permutations.
    n_tasks: number of tasks that the correction counts.
  """

  value: float
  p: float
  p_corrected: float
  chance: float
  null_median: float
  draws: int
  n_tasks: int

  _repr_html_ = table_of_fields

  def __repr__(self):
    """One line, rounded for reading."""
    if np.isnan(self.value):
      return "Lanes(Lambda undefined: positive effects in under two layers)"
    return (
      f"Lanes(Lambda={self.value:.3f}, p={self.p:.2g}, "
      f"p corrected x{self.n_tasks}={self.p_corrected:.2g}, "
      f"chance={self.chance:.3f}, null median={self.null_median:.3f})"
    )


class TopHead(NamedTuple):
  """A head chosen on one split and looked up on another.

  Attributes:
    layer: of the head, from 0.
    head: its index in the layer, from 0.
    discovery: mean effect where it was chosen, in logits.
    evaluation: mean effect on the other split, in logits.
    confirmed: whether `evaluation` is positive.
  """

  layer: int
  head: int
  discovery: float
  evaluation: float
  confirmed: bool

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def lane_score(e) -> np.ndarray:
  """Lambda: the share of effect mass between layers within one head index.

  With w = max(e, 0), the products w w' over pairs of heads of different
  layers, summed over pairs with equal index and divided by the sum over all.

  Args:
    e: `[..., layer, head]` mean effects.

  Returns:
    `[...]` in [0, 1]; nan where fewer than two layers hold a positive effect.

  Examples:
    >>> float(lane_score([[1.0, 0.0], [0.5, 0.5]]))
    0.5

  Source: paper A, section 4, the equation of the lane score.
  """
  w = np.maximum(np.asarray(e, np.float64), 0.0)
  # Scaling first keeps products of tiny effects from vanishing.
  largest = w.max(axis=(-2, -1), keepdims=True)
  w = np.divide(w, largest, out=np.zeros_like(w), where=largest > 0)
  same = _layer_pairs(w).sum(axis=-1)
  everything = _layer_pairs(w.sum(axis=-1, keepdims=True))[..., 0]
  return np.divide(
    same, everything, out=np.full_like(same, np.nan), where=everything > 0
  )


def lanes(
  effects, *, draws: int = 5000, seed: int = 0, n_tasks: int = 1
) -> Lanes:
  """Tests whether positive effects line up in head indices.

  The p-value is within a model; it says nothing about other seeds.

  Args:
    effects: `[example, layer, head]` logit differences, clean minus patched;
      of the discovery split.
    draws: permutations for the null.
    seed: of the permutations.
    n_tasks: tasks tested on this model, for the correction.

  Returns:
    The score and its permutation p; nan where the score is undefined.

  Raises:
    ValueError: if `effects` is no finite table with these axes, or `draws` or
      `n_tasks` is not positive.

  Examples:
    >>> lane = np.zeros((2, 3, 4))
    >>> lane[:, :, 1] = 0.5
    >>> lanes(lane, n_tasks=3)  # doctest: +NORMALIZE_WHITESPACE
    Lanes(Lambda=1.000, p=0.066, p corrected x3=0.2, chance=0.250,
    null median=0.333)

  Source: paper A, sections 4 and 5.3.
  """
  e = mean_effect(as_effects(effects))
  check(n_tasks >= 1, "n_tasks", n_tasks, "at least 1", "count the tasks")
  value = float(lane_score(e))
  # A permutation keeps the sum of every layer, so the null is undefined
  # exactly where the score is.
  null = permuted_null(lane_score, e, draws=draws, seed=seed)
  p = p_value(null, value, tail="upper")
  return Lanes(
    value=value,
    p=p,
    p_corrected=float(np.minimum(1.0, n_tasks * p)),
    chance=1 / e.shape[1],
    null_median=float(np.median(null)),
    draws=draws,
    n_tasks=n_tasks,
  )


def confirm_heads(
  discovery, evaluation, *, count: int = 3
) -> tuple[TopHead, ...]:
  """The heads with the largest mean effect, confirmed on another split.

  Args:
    discovery: `[example, layer, head]` effects that choose the heads.
    evaluation: `[example, layer, head]` effects of the same model elsewhere.
    count: how many heads.

  Returns:
    The heads by falling discovery effect; ties in order of layer and head.

  Raises:
    ValueError: if the tables are not of one model, or have too few heads.

  Examples:
    >>> confirm_heads([[[1.0, 2.0]]], [[[0.1, -0.1]]], count=1)
    (TopHead(layer=0, head=1, discovery=2.0, evaluation=-0.1, confirmed=False),)

  Source: paper A, appendix C (splits).
  """
  chosen = mean_effect(as_effects(discovery, "discovery"))
  other = mean_effect(as_effects(evaluation, "evaluation"))
  check(
    chosen.shape == other.shape,
    "evaluation",
    f"[layer, head] = {other.shape}",
    f"{chosen.shape} as in discovery",
    "pass two splits of one model",
  )
  check(
    1 <= count <= chosen.size,
    "count",
    count,
    f"1 to {chosen.size}",
    "ask for fewer heads",
  )
  order = np.argsort(-chosen, axis=None, kind="stable")[:count]
  return tuple(_look_up(chosen, other, int(flat)) for flat in order)


def _look_up(chosen: np.ndarray, other: np.ndarray, flat: int) -> TopHead:
  """The head at a flat index, in both `[layer, head]` tables."""
  layer, head = divmod(flat, chosen.shape[1])
  there = float(other[layer, head])
  return TopHead(layer, head, float(chosen[layer, head]), there, there > 0)


def _layer_pairs(w: np.ndarray) -> np.ndarray:
  """`[..., head]` sum of w w' over pairs of layers, without cancellation."""
  earlier = np.cumsum(w, axis=-2)[..., :-1, :]
  return (earlier * w[..., 1:, :]).sum(axis=-2)
