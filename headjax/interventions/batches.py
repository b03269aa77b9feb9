"""Which prompts run together, and where? Batches of one shape, on the devices.

The same for patched heads, sets, edges and clamps: a plan within the memory
budget, the parameters whole on every device, the examples spread over them, and
the last batch filled up with repeats.
"""

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np
from tqdm.auto import tqdm

from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks, suffix
from headjax.interventions.questions import Batch, batch_of
from headjax.models.load import LoadedModel


class Part(NamedTuple):
  """Some of the pairs.

  Attributes:
    place: where they belong among all examples.
    real: `[batch]` bool, False for the repeats that fill up the last batch.
    batch: the pairs themselves.
    window: from the first position that may change to the answer; None where
      whole prompts are run.
  """

  place: slice
  real: jax.Array
  batch: Batch
  window: suffix.Window | None

  @property
  def n(self) -> int:
    """How many of them are no repeats."""
    return self.place.stop - self.place.start


class Batches:
  """All pairs, in batches; iterating makes one ready after the other.

  Attributes:
    plan: examples a batch and sites a call.
    width: positions that a sweep computes: of the window, or the prompt.
    params: the parameters, on every device.
  """

  def __init__(
    self,
    model: LoadedModel,
    pairs: PromptPairs,
    budget_bytes: int,
    *,
    start: np.ndarray | None = None,
    many_sites: bool = False,
    extra: Callable[[int], tuple[int, int]] = lambda width: (0, 0),
  ):
    """Plans the batches; nothing is placed yet.

    Args:
      model: from `load_model`.
      pairs: clean and reference prompts, which the model can run.
      budget_bytes: per device, beside the parameters.
      start: `[example]` int, the first position that may change; None: whole
        prompts are run.
      many_sites: whether there are far more sites than fit a call.
      extra: from the width to the numbers needed besides per row and those
        kept besides per example.

    Raises:
      ValueError: not even one example and one site fit the budget.
    """
    self.model, self.pairs, self.start = model, pairs, start
    self.n_devices = min(jax.local_device_count(), len(pairs))
    n_pos = pairs.clean.shape[1]
    self.width = n_pos if start is None else self._window(slice(None)).width
    row_extra, example_extra = extra(self.width)
    plan = chunks.plan_rows if many_sites else chunks.plan
    self.plan = plan(
      model.config,
      n_examples=len(pairs),
      n_pos=n_pos,
      width=self.width,
      itemsize=jax.tree.leaves(model.params)[0].dtype.itemsize,
      budget_bytes=budget_bytes,
      n_devices=self.n_devices,
      row_extra=row_extra,
      example_extra=example_extra,
    )

  @functools.cached_property
  def params(self):  # noqa: D102, described above
    return chunks.replicate(self.model.params, self.n_devices)

  def __len__(self) -> int:
    return -(-len(self.pairs) // self.plan.examples)

  def __iter__(self) -> Iterator[Part]:
    for index, place in chunks.slices(len(self.pairs), self.plan.examples):
      real = np.arange(len(index)) < place.stop - place.start
      window = None
      if self.start is not None:
        window = self._window(index, self.width)
      here = (real, batch_of(self.pairs, index), window)
      yield Part(place, *chunks.spread(here, self.n_devices))

  def bar(self, sites: int, unit: str, doing: str, show: bool) -> tqdm:
    """A progress bar over all batches, of so many sites each."""
    return tqdm(
      total=len(self) * sites,
      unit=unit,
      unit_scale=self.plan.examples,
      desc=f"{self.pairs.name}: {doing}",
      disable=not show,
    )

  def _window(self, index, width: int | None = None) -> suffix.Window:
    return suffix.make_window(
      self.model.config,
      self.start[index],
      self.pairs.answer_pos[index],
      self.pairs.clean.shape[1],
      width,
    )
