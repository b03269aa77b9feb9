"""How fast do queries and keys turn with the position?

Coordinates i and i + width / 2 form a plane, turned by `position` times the
plane's frequency. The frequencies are constants of a config.
"""

import dataclasses
import math

import numpy as np

from headjax.checks import check, check_choice

SCALINGS = ("linear", "llama3", "none")


@dataclasses.dataclass(frozen=True)
class Scaling:
  """How the planes are slowed down for contexts longer than the first.

  Attributes:
    kind: "none"; "linear", all planes alike; or "llama3", only those that
      turn slowly, with a blend between.
    factor: by which they are slowed down.
    low: of "llama3": planes that turn less than this often within `context`
      are slowed down by the whole factor.
    high: of "llama3": planes that turn more than this often are left alone.
    context: of "llama3": the first context, in tokens.
  """

  kind: str = "none"
  factor: float = 1.0
  low: float = 1.0
  high: float = 4.0
  context: int = 8192

  def __post_init__(self):
    check_choice("rotary_scaling.kind", self.kind, SCALINGS)
    for field in ("factor", "low", "high", "context"):
      got = getattr(self, field)
      check(
        got > 0,
        f"rotary_scaling.{field}",
        got,
        "a positive number",
        "correct it",
      )
    check(
      self.low < self.high,
      "rotary_scaling.low",
      self.low,
      f"less than rotary_scaling.high = {self.high}",
      "exchange them",
    )


def frequencies(width: int, theta: float, scaling: Scaling) -> np.ndarray:
  """The frequencies of all planes.

  Args:
    width: coordinates that turn, even.
    theta: base of the frequencies.
    scaling: how they are slowed down.

  Returns:
    `[width / 2]` float64, radians per token.

  Source: the "llama3" rule is that of Llama 3.1's reference code.
  """
  plain = theta ** (-np.arange(width // 2) / (width // 2))
  if scaling.kind == "none":
    return plain
  slow = plain / scaling.factor
  if scaling.kind == "linear":
    return slow
  turns = plain * scaling.context / (2 * math.pi)
  kept = (turns - scaling.low) / (scaling.high - scaling.low)
  kept = np.clip(kept, 0, 1)
  return kept * plain + (1 - kept) * slow
