"""What does the study measure, in which order, on which prompts?

`PARTS` has one row a measurement. Later rows may need the results of earlier
ones. Top heads are chosen by their effects on the evaluation split where the
paper does so, and once more on the discovery split.
"""

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from headjax.checks import check
from headjax.studies.exclusivity import (
  alignment,
  circuits,
  concentration,
  coordinates,
  correspondence,
  edges,
  interactions,
  leakage,
  norm_terms,
  paths,
  responses,
  scalar_part,
  selectivity,
  self_repair,
  subjects,
  task_gradients,
)
from headjax.studies.exclusivity.measuring import Case, Part

DISCOVERY, VALIDATION = "discovery", "validation"
EVALUATION = "evaluation"
BOTH = (DISCOVERY, EVALUATION)
EDGE_EXAMPLES = 16  # of the validation split, as in the paper
TEXTS = 32  # validation sequences for gradients of the loss


def _heads(split: str) -> Callable[[Case], xr.Dataset]:
  return lambda case: concentration.measure(
    case.model, case.pairs(split), progress=case.progress
  )


def _effects(case: Case, split: str, task: str | None = None) -> xr.DataArray:
  """The effects on a split, which choose heads."""
  return case.result(f"heads-{split}", task).effect


def _lanes_series(case: Case) -> xr.Dataset:
  pairs = case.pairs(DISCOVERY)
  return case.over_steps(
    lambda model: concentration.measure(model, pairs, progress=case.progress)
  )


def _interactions(case: Case) -> xr.Dataset:
  chosen = _effects(case, DISCOVERY)
  return interactions.measure(
    case.model, case.pairs(), chosen, progress=case.progress
  )


def _selectivity(case: Case) -> xr.Dataset:
  chosen = {task: _effects(case, DISCOVERY, task) for task in case.tasks}
  return selectivity.measure(
    case.model, case.pairs(), chosen, progress=case.progress
  )


def _self_repair(case: Case) -> xr.Dataset:
  return self_repair.measure(case.model, case.pairs())


def _plain(measure: Callable[..., xr.Dataset]) -> Callable[[Case], xr.Dataset]:
  """A measurement of the evaluation prompts, and nothing else."""
  return lambda case: measure(case.model, case.pairs(), progress=case.progress)


def _leakage(case: Case) -> xr.Dataset:
  """Of all tasks from this one on: what they share is most of the work."""
  if ("leakage", case.task) not in case.shared:
    tasks = case.tasks[case.tasks.index(case.task) :]
    prompts = [case.pairs(task=task) for task in tasks]
    found = leakage.measure_all(case.model, prompts, progress=case.progress)
    names = [("leakage", task) for task in tasks]
    case.shared.update(zip(names, found, strict=True))
  return case.shared["leakage", case.task]


def _paths(split: str) -> Callable[[Case], xr.Dataset]:
  return lambda case: paths.measure(
    case.model, case.pairs(), _effects(case, split), progress=case.progress
  )


def _coordinates(split: str) -> Callable[[Case], xr.Dataset]:
  return lambda case: coordinates.measure(
    case.model,
    case.pairs(split),
    _effects(case, VALIDATION),
    progress=case.progress,
  )


def _task_gradients(case: Case) -> xr.Dataset:
  text = None if subjects.why_no_text(case.subject) else case.text(TEXTS)
  return task_gradients.measure(
    case.model, case.pairs(), sequences=text, progress=case.progress
  )


def _task_gradients_series(case: Case) -> xr.Dataset:
  pairs = case.pairs()
  return case.over_steps(lambda model: task_gradients.measure(model, pairs))


def _alignment_text(case: Case) -> np.ndarray | None:
  """Text for the gradients of values, where they read the whole stream."""
  blocked = "V" in case.model.config.read.blocks
  none = blocked or subjects.why_no_text(case.subject)
  return None if none else case.text(TEXTS)


def _alignment(case: Case) -> xr.Dataset:
  return alignment.measure(case.model, _alignment_text(case))


def _alignment_series(case: Case) -> xr.Dataset:
  text = _alignment_text(case)
  return case.over_steps(lambda model: alignment.measure(model, text))


def _scalar_part(case: Case) -> xr.Dataset:
  return scalar_part.measure(case.model, case.pairs())


def _free_values_frozen_writes(case: Case) -> str:
  config = case.model.config
  if not config.write.frozen:
    return "its writes are learned"
  return "its values read a block" if "V" in config.read.blocks else ""


def _correspondence(case: Case) -> xr.Dataset:
  return correspondence.measure(
    case.model, case.pairs(DISCOVERY), case.result("heads-discovery")
  )


def _edges(case: Case) -> xr.Dataset:
  pairs = case.pairs(VALIDATION).select(slice(EDGE_EXAMPLES))
  return edges.measure(
    case.model, pairs, layers=case.layers, progress=case.progress
  )


def _circuits(case: Case) -> xr.Dataset:
  pairs = case.pairs(VALIDATION).select(slice(EDGE_EXAMPLES))
  return circuits.measure(case.model, pairs, progress=case.progress)


def _is_run(case: Case) -> str:
  return "" if case.subject.folder else "it has no series of checkpoints"


_HEADS = ("heads-discovery", "heads-evaluation")
PARTS = (
  Part("heads-discovery", _heads(DISCOVERY), (DISCOVERY,)),
  Part("heads-validation", _heads(VALIDATION), (VALIDATION,)),
  Part("heads-evaluation", _heads(EVALUATION)),
  Part(
    "lanes-series", _lanes_series, (DISCOVERY,), applies=_is_run, series=True
  ),
  Part("interactions", _interactions, BOTH, ("heads-discovery",)),
  Part("selectivity", _selectivity, BOTH, ("heads-discovery",), across=True),
  Part("self-repair", _self_repair, needs=("heads-evaluation",)),
  Part("leakage", _leakage, needs=_HEADS),
  Part("norm-terms", _plain(norm_terms.measure)),
  Part("responses", _plain(responses.measure), needs=(*_HEADS, "leakage")),
  Part("paths", _paths(EVALUATION), needs=("heads-evaluation",)),
  Part("paths-discovery", _paths(DISCOVERY), BOTH, ("heads-discovery",)),
  Part("task-gradients", _task_gradients),
  Part(
    "task-gradients-series",
    _task_gradients_series,
    applies=_is_run,
    series=True,
  ),
  Part("alignment", _alignment, ()),
  Part("alignment-series", _alignment_series, (), applies=_is_run, series=True),
  Part(
    "coordinates-validation",
    _coordinates(VALIDATION),
    (VALIDATION,),
    ("heads-validation",),
  ),
  Part(
    "coordinates-evaluation",
    _coordinates(EVALUATION),
    (VALIDATION, EVALUATION),
    ("heads-validation", "coordinates-validation"),
  ),
  Part("scalar-part", _scalar_part, applies=_free_values_frozen_writes),
  Part(
    "edges",
    _edges,
    (VALIDATION,),
    only=("sva",),
    first=EDGE_EXAMPLES,
    by_layers=True,
  ),
  Part(
    "circuits", _circuits, (VALIDATION,), only=("sva",), first=EDGE_EXAMPLES
  ),
  Part("correspondence", _correspondence, (DISCOVERY,), _HEADS),
)


def choose(names: Sequence[str] | None) -> tuple[Part, ...]:
  """The parts of these names, and those that they need, in their order.

  Args:
    names: of parts, or beginnings of names ("heads"); None means all.

  Raises:
    ValueError: there is no such part.
  """
  if names is None:
    return PARTS
  wanted = set()
  for name in names:
    found = {
      p.name for p in PARTS if p.name == name or p.name.startswith(f"{name}-")
    }
    check(
      bool(found),
      "--parts",
      repr(name),
      "parts out of " + ", ".join(part.name for part in PARTS),
      "choose some of them",
    )
    wanted |= found
  for part in reversed(PARTS):
    if part.name in wanted:
      wanted |= set(part.needs)
  return tuple(part for part in PARTS if part.name in wanted)
