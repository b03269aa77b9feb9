"""Which of the paper's claims hold over seeds? One row a claim.

A claim is about one number of a design, or about the difference of two designs,
and says on which side of a bound it lies. It holds if the 95% interval over
seeds lies there, it does not if the interval lies on the other side, and
otherwise these runs do not decide it. What the paper itself found, for single
seeds at full size, stands beside it; "no" there is a claim that it refused.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headjax.statistics import seed_difference, seed_interval
from headjax.statistics.seeds import SeedInterval

Rows = Sequence[Mapping[str, Any]]
Tables = Mapping[str, Rows]
Select = Callable[[Tables], dict[str, float]]


@dataclasses.dataclass(frozen=True)
class Claim:
  """A statement about runs of one or two designs.

  Attributes:
    text: the statement.
    section: of the paper that makes or refuses it; "-" beyond the paper.
    statistic: the number that it is about, in words.
    paper: the paper's own verdict and printed values; "-" if it has none.
    a: from the tables to one value a run, by the run's name.
    b: the same of the design that `a` is compared with; None for `a` alone.
    bound: the statement is that the mean, or the difference, is above it.
  """

  text: str
  section: str
  statistic: str
  paper: str
  a: Select
  b: Select | None = None
  bound: float = 0.0


def column(
  table: str,
  name: str,
  design: str,
  change: Callable[[float], float] = float,
  **where: Any,
) -> Select:
  """Selects a column of a table for the runs of a design, a value a run.

  Args:
    table: its name.
    name: of the column; "x - y" and "x / y" are of two columns.
    design: the row of the config, without scale and corpus.
    change: applied to every value.
    **where: column -> value that the rows must have.

  Returns:
    From the tables to one value a run, the mean over its rows that have one.
  """

  def select(tables: Tables) -> dict[str, float]:
    runs: dict[str, list[float]] = {}
    for row in tables.get(table, ()):
      here = all(row[key] == value for key, value in where.items())
      if here and base_name(row["design"]) == design:
        runs.setdefault(row["run"], []).append(change(_value(row, name)))
    return {run: _mean(values) for run, values in runs.items()}

  return select


def less(a: Select, b: Select) -> Select:
  """The difference of two numbers of the same runs."""

  def select(tables: Tables) -> dict[str, float]:
    first, second = a(tables), b(tables)
    return {run: first[run] - second[run] for run in first if run in second}

  return select


def _mean(values: list[float]) -> float:
  there = [value for value in values if value == value]
  return float(np.mean(there)) if there else float("nan")


def base_name(design: str) -> str:
  """The row of the config that a design is, without scale and corpus."""
  name = design.partition("@")[0]
  return name[:-2] if name[-2:] in ("-R", "-S") else name


def scale(design: str) -> str:
  """The scale of a design: "tiny", "small", or "" at full size."""
  return design.partition("@")[2]


def _value(row: Mapping, name: str) -> float:
  for sign, combine in (
    (" - ", np.subtract), (" / ", np.divide)
  ):  # fmt: skip
    first, found, second = name.partition(sign)
    if found:
      return float(combine(row[first], row[second]))
  return float(row[name])


def judge(tables: Tables, claims: Sequence[Claim]) -> list[dict[str, Any]]:
  """One row a claim and scale, for those that some run has a value for.

  Args:
    tables: of `headjax.studies.exclusivity.tables`.
    claims: of `headjax.studies.exclusivity.claim_list`, or your own.

  Returns:
    Rows with `claim`, `section`, `statistic`, `scale`, `estimate`, its 95%
    interval over seeds `low` to `high`, `bound`, `n_seeds`, `holds` ("yes",
    "no" or "undecided") and `paper`, the paper's verdict and values.
  """
  scales = {
    scale(row["design"]): None
    for rows in tables.values()
    for row in rows
    if row.get("design")
  }
  found = []
  for name in scales:
    here = {
      table: [r for r in rows if scale(r.get("design", "")) == name]
      for table, rows in tables.items()
    }
    found += [row for claim in claims if (row := _judged(claim, here, name))]
  return found


def _judged(claim: Claim, tables: Tables, at: str) -> dict[str, Any] | None:
  interval = _interval(claim, tables)
  if not interval.n_seeds:
    return None
  return {
    "claim": claim.text,
    "section": claim.section,
    "statistic": claim.statistic,
    "scale": at or "full",
    "estimate": interval.estimate,
    "low": interval.low,
    "high": interval.high,
    "bound": claim.bound,
    "n_seeds": interval.n_seeds,
    "holds": verdict(interval, claim.bound),
    "paper": claim.paper,
  }


def _interval(claim: Claim, tables: Tables) -> SeedInterval:
  a = list(claim.a(tables).values())
  if claim.b is None:
    return seed_interval(a)
  return seed_difference(a, list(claim.b(tables).values()))


def verdict(interval: SeedInterval, bound: float) -> str:
  """Whether a number lies above a bound, over seeds."""
  if interval.low > bound:
    return "yes"
  return "no" if interval.high < bound else "undecided"
