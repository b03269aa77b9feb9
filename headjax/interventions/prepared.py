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
from headjax.interventions import chunks, suffix
from headjax.interventions.questions import (
  Question,
  batch_of,
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
    self.model, self.pairs, self.holds = model, pairs, holds
    self.question = Question(site, "all", "logit_difference")
    self.start = first_change(pairs, self.question, None)
    self.n_devices = min(jax.local_device_count(), len(pairs))
    self.width = self._window(slice(None)).width
    config, n_pos = model.config, pairs.clean.shape[1]
    held = self.width * (config.n_heads * config.d_head + config.d_model)
    self.plan = chunks.plan(
      config,
      n_examples=len(pairs),
      n_pos=n_pos,
      width=self.width,
      itemsize=jax.tree.leaves(model.params)[0].dtype.itemsize,
      budget_bytes=budget_bytes,
      n_devices=self.n_devices,
      row_extra=self.width * watched,
      example_extra=holds * config.n_layers * (held + n_pos * config.d_model),
    )

  def _window(self, index, width: int | None = None) -> suffix.Window:
    return suffix.make_window(
      self.model.config,
      self.start[index],
      self.pairs.answer_pos[index],
      self.pairs.clean.shape[1],
      width,
    )

  def __len__(self) -> int:
    return -(-len(self.pairs) // self.plan.examples)

  def __iter__(self) -> Iterator[Chunk]:
    params = chunks.replicate(self.model.params, self.n_devices)
    for index, place in chunks.slices(len(self.pairs), self.plan.examples):
      real = np.arange(len(index)) < place.stop - place.start
      window = self._window(index, self.width)
      batch, window, real = chunks.spread(
        (batch_of(self.pairs, index), window, real), self.n_devices
      )
      inputs = suffix_inputs(
          self.model.model, self.question, params, batch, window, None,
          holds=self.holds,
      )  # fmt: skip
      yield Chunk(place, real, params, *inputs)


def labels(pairs: PromptPairs) -> dict[str, tuple[str, np.ndarray]]:
  """The coordinates of the examples: number, lexical group, condition."""
  found = {"group": pairs.group, "condition": pairs.condition}
  found = {name: value for name, value in found.items() if value is not None}
  found["example"] = np.arange(len(pairs))
  return {name: ("example", value) for name, value in found.items()}
