"""How is one part of the study measured on one model, unless it is there?

A part measures one model, on one task for most of them. What it needs of
earlier parts, it reads from the store. A result is measured again when the
weights or the prompts are others than those that its file tells.
"""

import dataclasses
import functools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from headjax.data.pairs import PromptPairs
from headjax.data.tasks import load_task
from headjax.interventions.series import measure_series
from headjax.models.load import LoadedModel, load_model
from headjax.models.series import find_series, load_series
from headjax.studies.exclusivity import subjects
from headjax.studies.exclusivity.store import Store
from headjax.studies.exclusivity.subjects import Subject


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
  """One model, and one task of the study's if the part asks one.

  Attributes:
    subject: which model.
    model: loaded.
    store: with the results of earlier parts.
    tasks: of the study, in order.
    task: the one in hand; None for a part that asks none.
    examples: of each split, at most; None means all.
    layers: that patched edges lie in; None means all.
    progress: whether to show progress bars.
    shared: what a part found for later tasks on the way, by part and task.
  """

  subject: Subject
  model: LoadedModel
  store: Store
  tasks: tuple[str, ...]
  task: str | None
  examples: int | None
  layers: tuple[int, ...] | None
  progress: bool
  shared: dict[tuple[str, str], Any] = dataclasses.field(default_factory=dict)

  def pairs(
    self, split: str = "evaluation", task: str | None = None
  ) -> PromptPairs:
    """The prompts of the task in hand, or of another."""
    task = task or self.task
    return _pairs(self.model.tokenizer, task, split, self.examples)

  def text(self, count: int) -> np.ndarray:
    """`[sequence, pos]` validation text of the model's own corpus."""
    n_ctx = self.model.config.n_ctx
    return subjects.validation_text(self.subject, count, n_ctx)

  def over_steps(
    self, measure: Callable[[LoadedModel], xr.Dataset]
  ) -> xr.Dataset:
    """A measurement of every checkpoint of the run, along `step`."""
    return measure_series(load_series(_series(self.subject.folder)), measure)

  def result(self, part: str, task: str | None = None) -> xr.Dataset:
    """What an earlier part found, on the task in hand or another."""
    return self.store.load(self.subject.name, part, task or self.task)


@functools.lru_cache(maxsize=64)
def _pairs(tokenizer, task, split, examples) -> PromptPairs:
  return load_task(task, tokenizer, split=split).select(slice(examples))


@dataclasses.dataclass(frozen=True)
class Part:
  """One measurement of the study.

  Attributes:
    name: of the part and its files.
    measure: from a case to a dataset.
    splits: of the task that it uses; none if it asks no task.
    needs: parts that come first.
    applies: from a case to the reason why the part has nothing to say about
      this model; "" where it does.
    across: whether it uses the prompts of all tasks.
    series: whether it measures every checkpoint of the run.
    only: tasks that it is measured on, those of the study among them; None
      means all.
    first: how many examples it uses, the first ones; None means all.
    by_layers: whether it looks at the chosen layers alone.
  """

  name: str
  measure: Callable[[Case], xr.Dataset]
  splits: tuple[str, ...] = ("evaluation",)
  needs: tuple[str, ...] = ()
  applies: Callable[[Case], str] = lambda case: ""
  across: bool = False
  series: bool = False
  only: tuple[str, ...] | None = None
  first: int | None = None
  by_layers: bool = False

  def tasks(self, case: Case) -> tuple[str | None, ...]:
    """Those of the study that it is measured on; (None,) if it asks none."""
    if not self.splits:
      return (None,)
    only = case.tasks if self.only is None else self.only
    return tuple(task for task in case.tasks if task in only)

  def key(self, case: Case) -> str:
    """What a result depends on, as text."""
    weights = case.model.digest
    if self.series:
      weights = [point.digest for point in _series(case.subject.folder)]
    tasks = case.tasks if self.across else (case.task,)
    prompts = {
      f"{task} {split}": _pairs(
        case.model.tokenizer, task, split, case.examples
      ).digest
      for task in tasks
      for split in self.splits
    }
    known = {"weights": weights, "prompts": prompts}
    if self.first is not None:
      known["first"] = self.first
    if self.by_layers:
      known["layers"] = case.layers
    return json.dumps(known, sort_keys=True)


_series = functools.lru_cache(maxsize=2)(find_series)


def measure_all(
  subject: Subject,
  store: Store,
  parts: Sequence[Part],
  tasks: Sequence[str],
  *,
  examples: int | None = None,
  layers: Sequence[int] | None = None,
  progress: bool = False,
) -> Iterator[tuple[str, str | None, str]]:
  """Measures what is missing of one model; yields what it comes to, and how.

  Args:
    subject: the model.
    store: of the results.
    parts: in an order in which each finds what it needs.
    tasks: names.
    examples: of each split, from its first; None means all.
    layers: that patched edges lie in; None means all.
    progress: whether to show progress bars.

  Yields:
    Part, task (or None), and "measured", "was there", or why the model has no
    such result ("does not apply: ...", "refused: ...").
  """
  case = Case(
    subject, load_model(subject.spec), store, tuple(tasks), None, examples,
    None if layers is None else tuple(layers), progress,
  )  # fmt: skip
  for part in parts:
    for task in part.tasks(case):
      here = dataclasses.replace(case, task=task)
      yield part.name, task, _measure(part, here)


def _measure(part: Part, case: Case) -> str:
  why_not = part.applies(case)
  if why_not:
    return f"does not apply: {why_not}"
  key = part.key(case)
  if case.store.has(case.subject.name, part.name, case.task, key):
    return "was there"
  try:
    data = part.measure(case)
  except ValueError as error:  # what this model, or its prompts, do not allow
    return f"refused: {error}"
  data = data.assign_attrs(parameters=case.model.n_params)
  case.store.save(case.subject, part.name, case.task, key, data)
  return "measured"
