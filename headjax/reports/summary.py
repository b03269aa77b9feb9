"""What did a sweep over heads find, in one row? From a saved result alone.

The same call on a loaded file gives the numbers that the run printed: every
resampling is seeded.
"""

import csv
import dataclasses
import os
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from headjax.files import atomic
from headjax.outline import of_fields, table_of_fields
from headjax.statistics import (
  Concentration,
  Lanes,
  concentration,
  head_intervals,
  lanes,
)


@dataclasses.dataclass(frozen=True)
class Head:
  """One head with its mean effect and 95% bootstrap interval, in nats."""

  layer: int
  head: int
  effect: float
  low: float
  high: float

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def __str__(self) -> str:
    return (
      f"L{self.layer}H{self.head} {self.effect:+.2f}"
      f" [{self.low:+.2f}, {self.high:+.2f}]"
    )


@dataclasses.dataclass(frozen=True)
class Summary:
  """One model on one task.

  Attributes:
    model: its name.
    task: its name.
    split: of the task.
    n_examples: prompt pairs.
    accuracy: share of prompts whose answer beats the foil.
    margin: mean logit difference of the clean run, in nats.
    concentration: E, Neff and its factors.
    lanes: Lambda and its p-values.
    top: the heads of largest absolute mean effect.
  """

  model: str
  task: str
  split: str
  n_examples: int
  accuracy: float
  margin: float
  concentration: Concentration
  lanes: Lanes
  top: tuple[Head, ...]

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  @property
  def row(self) -> dict[str, str]:
    """The summary as labelled cells of a table."""
    found, lane = self.concentration, self.lanes
    return {
      "model": self.model,
      "task": self.task,
      "split": self.split,
      "examples": str(self.n_examples),
      "accuracy": f"{self.accuracy:.1%}",
      "margin": f"{self.margin:.2f}",
      "E": f"{found.total:.2f}",
      "Neff": f"{found.neff:.1f}",
      "N_index": f"{found.n_index:.1f}",
      "N_layer": f"{found.n_layer:.1f}",
      "Lambda": f"{lane.value:.3f}",
      "chance": f"{lane.chance:.3f}",
      "p": f"{lane.p:.2g}",
      "p corrected": f"{lane.p_corrected:.2g}",
      "largest head": str(self.top[0]),
    }


def summarise(result: xr.Dataset, *, top: int = 5, n_tasks: int = 1) -> Summary:
  """Summarises what `patch_heads` measured.

  Args:
    result: with `effect[example, layer, head]` and `base[example]`.
    top: how many heads to name.
    n_tasks: measured on this model, for the corrected p-value of Lambda.

  Raises:
    ValueError: fewer than two examples, or no effect at all.
  """
  base = result.base.values
  return Summary(
    model=str(result.attrs["model"]),
    task=str(result.attrs["task"]),
    split=str(result.attrs["split"]),
    n_examples=len(base),
    accuracy=float((base > 0).mean()),
    margin=float(base.mean()),
    concentration=concentration(result.effect),
    lanes=lanes(result.effect, n_tasks=n_tasks),
    top=_top_heads(result, top),
  )


def _top_heads(result, count):
  interval = head_intervals(result.effect)
  order = np.argsort(-np.abs(interval.estimate), axis=None, kind="stable")
  heads = []
  for flat in order[:count]:
    at = np.unravel_index(flat, interval.estimate.shape)
    values = (interval.estimate[at], interval.low[at], interval.high[at])
    heads.append(Head(int(at[0]), int(at[1]), *map(float, values)))
  return tuple(heads)


def save_table(
  rows: Sequence[Mapping[str, str | int]], path: str | os.PathLike
) -> None:
  """Writes rows of labelled cells as CSV, whole or not at all.

  Args:
    rows: label -> cell; the first row's labels are the header.
    path: the file.
  """
  with atomic(path) as part, open(part, "w", newline="") as file:
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)


def table(rows: Sequence[dict[str, str]]) -> str:
  """Rows of labelled cells as aligned text, numbers to the right."""
  labels = list(rows[0])
  lines = [labels, *([row[label] for label in labels] for row in rows)]
  widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
  names = {"model", "task", "split", "largest head"}

  def pad(cell, label, width):
    return cell.ljust(width) if label in names else cell.rjust(width)

  return "\n".join(
    "  ".join(map(pad, line, labels, widths)).rstrip() for line in lines
  )
