"""What does a suffix sweep of many prompts run on? Chunks, each made ready.

Every head's output is to be replaced by its value on the reference prompt (or
by what it would be with the reference's queries, keys or values); the metric is
the logit difference.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from headjax.checks import check_choice
from headjax.data.pairs import PromptPairs
from headjax.interventions import suffix
from headjax.interventions.batches import Batches
from headjax.interventions.questions import (
  Question,
  check_pairs,
  first_change,
  suffix_inputs,
)
from headjax.interventions.record import HEAD_SITES
from headjax.interventions.sweep import Metric
from headjax.models.load import LoadedModel


class Chunk(NamedTuple):
  """Some examples, placed on the devices.

  Attributes:
    place: where they belong among all examples.
    real: `[batch]` bool, False for repeats that fill up the chunk.
    params: of the model.
    shared: the cut clean run.
    metric: of these examples.
    base: `[batch]`, the metric of the clean run.
  """

  place: slice
  real: jax.Array
  params: Any
  shared: suffix.Base
  metric: Metric
  base: jax.Array


class Prepared:
  """The chunks of all prompts; to be gone through once."""

  def __init__(
    self,
    model: LoadedModel,
    pairs: PromptPairs,
    site: str,
    budget_bytes: int,
    *,
    holds: bool = False,
    watched: int = 0,
  ):
    """Checks the prompts and plans the chunks.

    Args:
      model: from `load_model`.
      pairs: clean and reference prompts.
      site: "z", "q", "k" or "v".
      budget_bytes: per device, beside the parameters.
      holds: whether anything will be held at its clean value.
      watched: numbers per row and position that watching needs.
    """
    check_choice("site", site, HEAD_SITES)
    check_pairs(model.config, pairs)
    self.model, self.holds = model, holds
    self.question = Question(site, "all", "logit_difference")
    config, n_pos = model.config, pairs.clean.shape[1]

    def extra(width):
      held = width * (config.n_heads * config.d_head + config.d_model)
      kept = config.n_layers * (held + n_pos * config.d_model)
      return width * watched, holds * kept

    start = first_change(pairs, self.question, None)
    self.batches = Batches(model, pairs, budget_bytes, start=start, extra=extra)
    self.plan = self.batches.plan

  def __len__(self) -> int:
    return len(self.batches)

  def __iter__(self) -> Iterator[Chunk]:
    params = self.batches.params
    for part in self.batches:
      inputs = suffix_inputs(
          self.model.model, self.question, params, part.batch, part.window,
          None, holds=self.holds,
      )  # fmt: skip
      yield Chunk(part.place, part.real, params, *inputs)


def labels(pairs: PromptPairs) -> dict[str, tuple[str, np.ndarray]]:
  """The coordinates of the examples: number, lexical group, condition."""
  found = {"group": pairs.group, "condition": pairs.condition}
  found = {name: value for name, value in found.items() if value is not None}
  found["example"] = np.arange(len(pairs))
  return {name: ("example", value) for name, value in found.items()}
