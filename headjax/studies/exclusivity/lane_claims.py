"""What does the paper claim of lanes? Sections 5.3 and 7."""

import numpy as np

from headjax.studies.exclusivity.claims import (
  Claim,
  Select,
  Tables,
  base_name,
  column,
)
from headjax.studies.exclusivity.published import TASKS, by_task

SHARED = ("write-common", "write-common-axis", "mlp3456", "value384")
# Of which half the indices are special, and those of which none is.
HALVES = (
  "half-shared", "write-common-axis", "write-rotated",
  "half-shared-v", "all-common-axis-v",
)  # fmt: skip
LEARNED = 0.9  # of the final accuracy


def lanes() -> list[Claim]:
  """Section 5.3, and the half-shared control of section 7."""
  printed = {
    "write-common": by_task(
      sva="yes, .342", quote="yes, .162", plural="yes, .246"
    ),
    "write-common-axis": by_task(
      sva="undecided, .185", quote="yes, .165", plural="no, .070"
    ),
    "mlp3456": by_task(sva="yes, .457", quote="yes, .360"),
    "value384": by_task(sva="yes, .691"),
    "all-common-axis": by_task(
      sva="yes, .720", quote="yes, .299", plural="no, .035"
    ),
    "read-common": by_task(**dict.fromkeys(TASKS, "no, at most .23")),
    "learned": by_task(**dict.fromkeys(TASKS, "no, at most .10")),
    "write-rotated": by_task(**dict.fromkeys(TASKS, "no, .05 to .14")),
    "all-rotated": by_task(**dict.fromkeys(TASKS, "no, .02 to .06")),
    "all-rotated-self": by_task(**dict.fromkeys(TASKS, "no, .04 to .10")),
  }
  found = [
    _lane(design, task, paper[task])
    for design, paper in printed.items()
    for task in TASKS
  ]
  for task in TASKS:
    found += [
      Claim(
        f"{task}: lanes of {design} are stronger than those of learned",
        "5.3",
        "difference of Lambda",
        "-",
        column("lanes", "Lambda", design, task=task),
        column("lanes", "Lambda", "learned", task=task),
      )
      for design in (*SHARED, "all-common-axis")
    ]
    found += [
      Claim(
        f"{task}: {design}: Lambda is larger within even indices than odd",
        "7",
        "Lambda within even less Lambda within odd indices",
        "-",
        column("halves", "difference", design, task=task),
      )
      for design in HALVES
    ]
    found += [
      Claim(
        f"{task}: the lane of {design} forms after the task is learned",
        "5.3",
        "doublings of steps between the two",
        "yes, 4,096 to 16,384 steps" if task == "sva" else "-",
        lane_delay(design, task),
      )
      for design in ("write-common", "write-common-axis")
    ]
  found += [
    Claim(
      f"sva: an index occurs twice among the top 3 heads of {design}",
      "5.3",
      "share of runs",
      paper,
      column("lanes", "same_index", design, lambda n: n > 1, task="sva"),
      bound=0.5,
    )
    for design, paper in (
      ("write-common-axis", "yes, in all of 7 variants"),
      ("learned", "no, in none of 4 models"),
    )
  ]
  return found


def _lane(design: str, task: str, paper: str) -> Claim:
  return Claim(
    f"{task}: the heads of {design} line up in lanes",
    "5.3",
    "Lambda less chance",
    paper,
    column("lanes", "Lambda - chance", design, task=task),
  )


def lane_delay(design: str, task: str) -> Select:
  """How much later a lane forms than the task is learned, in doublings.

  The task is learned at the first checkpoint with 90% of the final accuracy,
  the lane formed at the first with half of the way from chance to the final
  Lambda. A run without a lane in the end has no delay and is left out.
  """

  def select(tables: Tables) -> dict[str, float]:
    runs: dict[str, list] = {}
    for row in tables.get("curves", ()):
      if base_name(row["design"]) == design and row["task"] == task:
        runs.setdefault(row["run"], []).append(row)
    return {
      run: _delay(sorted(rows, key=lambda row: row["step"]))
      for run, rows in runs.items()
    }

  return select


def _delay(rows: list) -> float:
  steps = np.array([row["step"] for row in rows], float)
  accuracy = np.array([row["accuracy"] for row in rows])
  above = np.array([row["Lambda"] - row["chance"] for row in rows])
  if not above[-1] > 0 or len(rows) < 2:
    return float("nan")
  later = np.maximum(steps, steps[steps > 0].min())  # step 0 is no doubling
  learned = later[(accuracy >= LEARNED * accuracy[-1]).argmax()]
  formed = later[(above >= above[-1] / 2).argmax()]
  return float(np.log2(formed / learned))
