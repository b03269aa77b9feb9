"""Which heads write for or against the answer, more than by chance?

Everything here is a function of the attributions of every prompt. Two rules
find the significant heads: "z" is that of the released figures, "sign-flip"
makes no assumption on how the attributions are distributed.
"""

import dataclasses

import numpy as np

from headjax.checks import check, check_choice
from headjax.statistics.multiplicity import benjamini_hochberg, rejected
from headjax.statistics.shuffled_control import (
  Controlled,
  candidates,
  shuffled_control,
  standard_error,
)
from headjax.statistics.sign_flips import sign_flip_p

RULES = ("z", "sign-flip")


@dataclasses.dataclass(frozen=True)
class Discovery:
  """What the attributions say about every head.

  Attributes:
    control: `[layer, head]` means, their shuffled control, z and its p.
    rule: what found the significant heads, one of RULES.
    p: `[layer, head]` by that rule.
    adjusted: `[layer, head]` p after Benjamini and Hochberg, over all heads.
    significant: `[layer, head]` bool.
    candidates: `[layer, head]` bool, the heads to look at: the significant
      ones and the K largest.
  """

  control: Controlled
  rule: str
  p: np.ndarray
  adjusted: np.ndarray
  significant: np.ndarray
  candidates: np.ndarray

  @property
  def n_significant(self) -> int:
    """Heads that pass the false discovery rate; may be 0 beside candidates."""
    return int(self.significant.sum())

  @property
  def n_candidates(self) -> int:
    """Heads to look at."""
    return int(self.candidates.sum())

  @property
  def writers(self) -> np.ndarray:
    """`[layer, head]` significant heads that write for the answer."""
    return self.significant & (self.control.refined > 0)

  @property
  def cancellers(self) -> np.ndarray:
    """`[layer, head]` significant heads that write against it."""
    return self.significant & (self.control.refined < 0)


def discover(
  attribution,
  shuffled,
  *,
  rule: str = "z",
  q: float = 0.10,
  draws: int = 10_000,
  seed: int = 0,
  group=None,
) -> Discovery:
  """Tests every head's attribution against the one with shuffled labels.

  Args:
    attribution: `[prompt, layer, head]` towards the answer, in logits.
    shuffled: `[shuffle, prompt, layer, head]` on the same prompts with the
      labels of their demonstrations shuffled.
    rule: one of RULES. The sign-flip rule takes each prompt's attribution less
      its mean over the shuffles, and changes their signs at random.
    q: the false discovery rate.
    draws: choices of signs of the sign-flip rule.
    seed: of these signs.
    group: `[prompt]` labels of prompts that change sign together.

  Returns:
    The tests, and the heads they choose.

  Raises:
    ValueError: tables that do not fit, or a rule that does not exist.

  Source: paper C, refined direct logit attribution and its candidate set.
  """
  check_choice("rule", rule, RULES)
  values = np.asarray(attribution, np.float64)
  shuffled = np.asarray(shuffled, np.float64)
  check(
    values.ndim == 3 and shuffled.shape[1:] == values.shape,
    "shuffled",
    f"shape {shuffled.shape} beside attributions {values.shape}",
    "[shuffle, prompt, layer, head] and [prompt, layer, head]",
    "measure the same prompts with shuffled labels",
  )
  control = shuffled_control(
    values.mean(axis=0), standard_error(values), shuffled.mean(axis=1)
  )
  if rule == "z":
    return choose(control, q=q)
  own = values - shuffled.mean(axis=0)
  p = sign_flip_p(own, draws=draws, seed=seed, group=group)
  return choose(control, q=q, rule=rule, p=p)


def choose(
  control: Controlled, *, q: float = 0.10, rule: str = "z", p=None
) -> Discovery:
  """The significant heads and the candidates, from tests of all heads.

  Args:
    control: means and their shuffled control, `[...]`.
    q: the false discovery rate.
    rule: what gave p.
    p: `[...]`; None takes those of z.
  """
  p = control.p if p is None else p
  adjusted = benjamini_hochberg(p)
  significant = rejected(adjusted, q)
  chosen = candidates(control.mean, significant)
  return Discovery(control, rule, p, adjusted, significant, chosen)
