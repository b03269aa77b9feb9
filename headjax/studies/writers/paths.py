"""Which candidates write the answer themselves, and which cancel it?

A head's role is decided by its direct effect: the share of the swing between a
prompt and its rule flip that the head's own path to the final stream carries.
Everything here is a function of the effects of every pair.
"""

import dataclasses

import numpy as np

from headjax.checks import check
from headjax.statistics.multiplicity import benjamini_hochberg, rejected
from headjax.statistics.ratios import Ratios, mean_ratios

ROLES = ("writer", "canceller", "weak", "undefined")
PATHS = ("direct", "total", "indirect")


@dataclasses.dataclass(frozen=True)
class Shares:
  """Shares of the swing of every candidate, `[head]` unless said otherwise.

  Attributes:
    direct: of the head's own path.
    total: with everything after the head recomputed.
    indirect: total minus direct.
    adjusted: p of the direct share after Benjamini and Hochberg.
    roles: each one of ROLES.
    n_valid: pairs whose swing is large enough.
    n_pairs: pairs that were measured.
    mean_swing: of the valid pairs, in logits; nan without any.
  """

  direct: Ratios
  total: Ratios
  indirect: Ratios
  adjusted: np.ndarray
  roles: np.ndarray
  n_valid: int
  n_pairs: int
  mean_swing: float

  def of_role(self, role: str) -> np.ndarray:
    """`[head]` bool, the candidates with a role."""
    return self.roles == role

  @property
  def doubt(self) -> str | None:
    """Why there are no roles, in words; None where there are."""
    if len(self.roles) and (self.roles == "undefined").all():
      return (
        f"{self.n_valid} of {self.n_pairs} pairs have the swing that roles "
        "are made of: the model does not follow the rules, or needs more pairs"
      )
    return None


def shares(
  direct,
  total,
  swing,
  *,
  threshold: float = 0.5,
  least_pairs: int = 20,
  q: float = 0.10,
  margin: float = 0.05,
  draws: int = 10_000,
  seed: int = 0,
) -> Shares:
  """The shares of the swing and the roles that follow from them.

  Args:
    direct: `[pair, head]` direct effects of the candidates, in logits.
    total: `[pair, head]` total effects.
    swing: `[pair]` logit difference of the clean prompt minus that of its rule
      flip, both for the clean prompt's answer.
    threshold: swing of a valid pair, in logits.
    least_pairs: with fewer valid pairs roles are undefined.
    q: the false discovery rate over the candidates.
    margin: share from which a head is no weak one.
    draws: resamples of the valid pairs.
    seed: of the resamples.

  Returns:
    Shares and roles.

  Raises:
    ValueError: tables that do not fit or are not finite.

  Source: paper C, path patching.
  """
  direct = np.asarray(direct, np.float64)
  total = np.asarray(total, np.float64)
  swing = np.asarray(swing, np.float64)
  check(
    direct.ndim == 2 and direct.shape == total.shape,
    "total",
    f"shape {total.shape} beside direct effects {direct.shape}",
    "[pair, head] both",
    "pass the effects of the same pairs and heads",
  )
  found = [
    mean_ratios(part, swing, threshold=threshold, draws=draws, seed=seed)
    for part in (direct, total, total - direct)
  ]
  valid = found[0].valid
  adjusted = benjamini_hochberg(found[0].p)
  if valid.sum() < least_pairs:
    named = np.full(direct.shape[1], "undefined")
  else:
    named = roles(found[0].mean, adjusted, q=q, margin=margin)
  return Shares(
    *found,
    adjusted=adjusted,
    roles=named,
    n_valid=int(valid.sum()),
    n_pairs=len(swing),
    mean_swing=float(swing[valid].mean()) if valid.any() else float("nan"),
  )


def roles(
  share, adjusted, *, q: float = 0.10, margin: float = 0.05
) -> np.ndarray:
  """The role of every head.

  Args:
    share: `[head]` mean direct share of the swing.
    adjusted: `[head]` its adjusted p.
    q: the false discovery rate.
    margin: share from which a significant head is a writer, or, negative, a
      canceller.

  Returns:
    `[head]` of "writer", "canceller" and "weak".
  """
  share, surely = np.asarray(share), rejected(adjusted, q)
  return np.select(
    [surely & (share >= margin), surely & (share <= -margin)],
    ["writer", "canceller"],
    "weak",
  )
