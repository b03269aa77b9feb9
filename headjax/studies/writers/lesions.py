"""Are there two opposing groups? What the answer loses without each of them.

A change is the logit difference without a group minus that of the whole model:
negative where the group was needed, positive where it stood in the way.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from headjax.checks import check
from headjax.statistics.bca import bca_mean
from headjax.statistics.partitions import Partitions
from headjax.statistics.resampling import Interval

VERDICTS = (
  "canonical",
  "writers_dominate",
  "cancellers_dominate",
  "opposite_no_attenuation",
  "co_writers",
  "none",
)


@dataclasses.dataclass(frozen=True)
class Verdict:
  """Four conditions on the changes without W, without C and without both.

  Attributes:
    name: one of VERDICTS; "none" where neither group matters, a name that the
      paper has not.
    writers_matter: (i) without W the change is large and its interval excludes
      0, and it is negative.
    cancellers_matter: (ii) the same without C, and positive.
    opposite: (iii) the two changes have opposite signs.
    attenuated: (iv) without both the change is smaller than the sizes of the
      two together. Any two opposite groups that simply add fulfil this.
    interaction: size of the change without both, minus that of the sum of the
      two: 0 for groups that simply add.
  """

  name: str
  writers_matter: bool
  cancellers_matter: bool
  opposite: bool
  attenuated: bool
  interaction: float

  @property
  def relaxed(self) -> bool:
    """Conditions (i) to (iii), the verdict on another template."""
    return self.writers_matter and self.cancellers_matter and self.opposite


def change(base, lesioned, *, draws: int = 10_000, seed: int = 0) -> Interval:
  """The mean change of the logit difference, with its BCa interval.

  Args:
    base: `[example]` logit differences of the whole model.
    lesioned: `[example]` of the model without a group. An empty group changes
      nothing: pass `base` again.
    draws: resamples.
    seed: of the resamples.

  Raises:
    ValueError: tables that do not fit, or fewer than two examples.
  """
  base, lesioned = (np.asarray(x, np.float64) for x in (base, lesioned))
  check(
    base.shape == lesioned.shape,
    "lesioned",
    f"shape {lesioned.shape}",
    f"{base.shape} as in base",
    "measure both on the same examples",
  )
  return bca_mean(lesioned - base, draws=draws, seed=seed)


def verdict(
  writers: Interval,
  cancellers: Interval,
  both: Interval,
  *,
  floor: float = 0.10,
) -> Verdict:
  """Whether two opposing groups were found.

  Args:
    writers: change without W.
    cancellers: change without C.
    both: change without W and C.
    floor: size of a large change, in logits.

  Returns:
    The conditions and the name that follows from them.

  Source: paper C, the canonical verdict: its four conditions, and the order in
    which its released figures name the other outcomes.
  """
  big_w, big_c = _is_big(writers, floor), _is_big(cancellers, floor)
  w, c = writers.estimate, cancellers.estimate
  found = {
    "writers_matter": big_w and w < 0,
    "cancellers_matter": big_c and c > 0,
    "opposite": w * c < 0,
    "attenuated": abs(both.estimate) < abs(w) + abs(c),
  }
  name = _name(big_w, big_c, **found)
  interaction = abs(both.estimate) - abs(w + c)
  return Verdict(name, **found, interaction=float(interaction))


@dataclasses.dataclass(frozen=True)
class SignShuffle:
  """Whether the roles of the heads, and not just any split, oppose.

  Attributes:
    difference: change without W less change without C.
    p: share of the splits of W and C whose difference is as large.
    splits: how many splits, the observed one among them.
    exhaustive: whether these are all.
  """

  difference: float
  p: float
  splits: int
  exhaustive: bool


def sign_shuffle(base, first, second, splits: Partitions) -> SignShuffle:
  """The null of the roles: heads exchange them, the sizes of the groups stay.

  Args:
    base: `[example]` logit differences of the whole model.
    first: `[example, split]` without the first group of each split.
    second: `[example, split]` without the rest of W and C.
    splits: of W and C; the first is the observed one.

  Source: paper C, the sign-shuffle null.
  """
  base = np.asarray(base, np.float64)[:, None]
  differences = (np.asarray(first) - base) - (np.asarray(second) - base)
  means = differences.mean(axis=0)
  return SignShuffle(
    float(means[0]), splits.p_value(means), len(means), splits.exhaustive
  )


def split_groups(
  heads: Sequence[tuple[int, int]], splits: Partitions, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
  """The two groups of every split, as `lesion_groups` takes them.

  Args:
    heads: (layer, head) of each member.
    splits: of these.
    shape: layers and heads of the model.

  Returns:
    `[split, layer, head]` bool, of the first groups and of the others.
  """
  groups = np.zeros((2, len(splits.first), *shape), bool)
  for (layer, head), first in zip(heads, splits.first.T, strict=True):
    groups[0, :, layer, head] = first
    groups[1, :, layer, head] = ~first
  return groups[0], groups[1]


def _is_big(interval: Interval, floor: float) -> bool:
  excludes_zero = interval.low > 0 or interval.high < 0
  return bool(abs(interval.estimate) >= floor and excludes_zero)


def _name(
  big_w, big_c, writers_matter, cancellers_matter, opposite, attenuated
):
  """The first name whose condition holds."""
  if not big_w and not big_c:
    return "none"
  if writers_matter and cancellers_matter and attenuated:
    return "canonical"
  if not big_c:
    return "writers_dominate"
  if not big_w:
    return "cancellers_dominate"
  if opposite and not attenuated:
    return "opposite_no_attenuation"
  return "co_writers"
