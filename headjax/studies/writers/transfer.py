"""Do the roles of heads go with the task? The same heads on other templates.

Groups that one task defines are taken away on the prompts of another, and so
is a single head: a canceller of rules may write antonyms.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from headjax.geometry.circuits import ov_circuit
from headjax.interventions.group_lesions import lesion_groups
from headjax.models import weights
from headjax.models.load import LoadedModel
from headjax.statistics.resampling import Interval
from headjax.studies.writers.cell import GROUPS, Cell
from headjax.studies.writers.lesions import Verdict, change, verdict
from headjax.studies.writers.prompts import load_prompts
from headjax.studies.writers.released import Head, name_of

PROMPTS = 100


def on_templates(
  model: LoadedModel,
  found: Cell,
  tasks: Sequence[str],
  *,
  heads: Sequence[Head] = (),
  examples: int = PROMPTS,
) -> tuple[dict[str, xr.Dataset], dict[str, str]]:
  """Takes the groups of a cell, and single heads, away on other tasks.

  Args:
    model: from `load_model`.
    found: the cell that defines the groups.
    tasks: other tasks with demonstrations.
    heads: single heads to take away, too.
    examples: prompts of each task.

  Returns:
    Task -> lesions, the groups of GROUPS first, then the heads, which its
    coordinates name; and task -> why it was refused.
  """
  shape = found.discovery.p.shape
  masks = np.zeros((3 + len(heads), *shape), bool)
  for i, role in enumerate(("writer", "canceller")):
    for head in found.of_role(role):
      masks[i, *head] = masks[2, *head] = True
  for mask, head in zip(masks[3:], heads, strict=True):
    mask[head] = True
  names = [*GROUPS, *map(name_of, heads)]
  data, reasons = {}, {}
  for task in tasks:
    try:
      prompts = load_prompts(
        task, model.tokenizer, purpose="evaluation", examples=examples
      )
    except ValueError as reason:
      reasons[task] = str(reason)
      continue
    lesions = lesion_groups(model, prompts.pairs, masks)
    data[task] = lesions.assign_coords(group_of_heads=names)
  return data, reasons


@dataclasses.dataclass(frozen=True)
class Transfer:
  """What the lesions say on one task.

  Attributes:
    accuracy: of the whole model.
    changes: group or head -> change of the logit difference without it.
    verdict: of the groups; `verdict.relaxed` are its conditions (i) to (iii).
  """

  accuracy: float
  changes: dict[str, Interval]
  verdict: Verdict


def transferred(
  data: Mapping[str, xr.Dataset], *, draws: int = 10_000, seed: int = 0
) -> dict[str, Transfer]:
  """What the lesions say on every task.

  Args:
    data: of `on_templates`.
    draws: resamples.
    seed: of the resamples.

  Source: paper C, labels of a rule task on antonym and country-capital.
  """
  found = {}
  for task, lesions in data.items():
    base = lesions.base.values
    changes = {
      name: change(base, lesions.lesioned.values[:, i], draws=draws, seed=seed)
      for i, name in enumerate(lesions.group_of_heads.values.tolist())
    }
    found[task] = Transfer(
      float((base > 0).mean()),
      changes,
      verdict(*(changes[group] for group in GROUPS)),
    )
  return found


def transfer_rows(
  found: Mapping[str, Transfer],
) -> list[dict[str, object]]:
  """One row for each task and group or head.

  `share` is the change as a share of that without all cancellers.
  """
  return [
    {
      "task": task,
      "without": name,
      "change": interval.estimate,
      "share": _share(interval, one.changes["cancellers"]),
      "low": interval.low,
      "high": interval.high,
      "accuracy": one.accuracy,
      "verdict": one.verdict.name,
      "relaxed": one.verdict.relaxed,
    }
    for task, one in found.items()
    for name, interval in one.changes.items()
  ]


def _share(one: Interval, of: Interval) -> float:
  return one.estimate / of.estimate if of.estimate else float("nan")


def leading_canceller(found: Cell) -> Head | None:
  """The canceller of the largest direct share, for a study of its own."""
  cancellers = found.of_role("canceller")
  shares = dict(zip(found.candidates, found.shares.direct.mean, strict=True))
  return min(cancellers, key=lambda head: shares[head], default=None)


def value_composition(
  model: LoadedModel, head: Head, sources: Sequence[Head]
) -> list[dict[str, object]]:
  """How much of what earlier heads write goes through a head's values.

  Args:
    model: from `load_model`.
    head: (layer, head) that reads.
    sources: (layer, head) in earlier layers.

  Returns:
    Rows with |OV' OV| / (|OV'| |OV|), Frobenius norms; of random matrices it
    is about 1 / sqrt(d_model).

  Source: Elhage et al. (2021), V-composition; paper C, its case study.
  """
  config, params = model.config, model.params
  W_V, W_O = (
    np.asarray(weights.per_query_head(params, config, name))
    for name in ("W_V", "W_O")
  )
  own = ov_circuit(W_V[head], W_O[head])
  rows = []
  for source in sources:
    before = ov_circuit(W_V[source], W_O[source])
    size = float(before.norm() * own.norm())
    both = float((before @ own).norm())
    rows.append(
      {
        "head": name_of(head),
        "source": name_of(source),
        "composition": both / size if size else float("nan"),
      }
    )
  return rows
