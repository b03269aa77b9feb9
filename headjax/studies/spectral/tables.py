"""Which numbers does the study print? Rows, from saved measurements alone."""

import json
from collections.abc import Mapping

import numpy as np
import xarray as xr

from headjax.checks import check
from headjax.data.probes import PLAIN
from headjax.studies.spectral import (
  development,
  foretelling,
  screen,
  seeds,
  trajectory,
  verify,
)

KINDS = ("induction", "previous")  # whose circuits are followed in training
SOLVED = 0.6  # share of prompts in which the indirect object is preferred


def circuits(found: xr.Dataset) -> dict[str, list[screen.Head]]:
  """The circuits of the last checkpoint; kinds without a head are left out.

  Of prompts with an indirect object also the name movers and the heads of
  S-inhibition, and both together.
  """
  final = trajectory.last(found)
  kinds = list(KINDS)
  kinds += [k for k in final.kind.values.tolist() if k not in PLAIN]
  made = {kind: screen.circuit(final, kind) for kind in kinds}
  if len(kinds) > 2:
    names = kinds[2:]
    made[" + ".join(names)] = sorted({h for k in names for h in made[k]})
  return {name: heads for name, heads in made.items() if heads}


def of_measurement(found: xr.Dataset) -> dict[str, list[dict]]:
  """The tables of one checkpoint, and of a series those along training."""
  final = trajectory.last(found)
  tables = {
    "heads": screen.rows(final),
    "class_shares": screen.class_shares(final),
    "conserved": conserved(found),
  }
  if "step" not in found.dims:
    return tables
  tables["classes_by_step"] = development.class_shares(found)
  tables["first_by_layer"] = development.class_by_layer(found, "first")
  for kind in KINDS:
    heads = screen.circuit(final, kind)
    tables[f"recall_{kind}"] = development.recall(found, kind)
    tables[f"foretold_{kind}"] = foretelling.foretold(found, kind, heads)
    tables[f"along_{kind}"] = development.along(found, kind, heads)
  if (found.step.values > 0).sum() >= 2:
    tables["integral"] = trajectory.rows(found)
  return tables


def shift(series: xr.Dataset, step: int) -> dict[str, list[dict]]:
  """Do the circuits of a first phase of training outlive other data?

  Args:
    series: of both phases.
    step: of the last checkpoint of the first phase.

  Returns:
    `shift`, a row a kind with both circuits and their Jaccard index, and of
    each kind the heads of the first circuit along the second phase.

  Raises:
    ValueError: no such checkpoint, or none after it.
  """
  series = trajectory.ordered(series)
  steps = series.step.values
  check(
    step in steps[:-1], "--shift", step,
    f"one of {', '.join(map(str, steps[:-1]))}", "choose a checkpoint",
  )  # fmt: skip
  first, second = series.sel(step=steps <= step), series.sel(step=steps >= step)
  made, table = {}, []
  for kind in KINDS:
    found = development.data_shift(first, second, kind)
    before, after = found["before"], found["after"]
    table.append(
      {
        "kind": kind,
        "step": step,
        "last_step": int(steps[-1]),
        "before": spelt(before),
        "after": spelt(after),
        "jaccard": found["jaccard"],
      }
    )
    made[f"shift_{kind}"] = development.along(second, kind, before)
  return made | {"shift": table}


def spelt(heads) -> str:
  """Heads as text."""
  return " ".join(f"L{layer}H{head}" for layer, head in heads)


def overview(measured: Mapping[str, xr.Dataset]) -> list[dict]:
  """A row a model: how many heads its circuits have, and what is conserved.

  Args:
    measured: name of the model -> its measurement, a series or a checkpoint.
  """
  rows = []
  for name, found in measured.items():
    final = trajectory.last(found)
    part = screen.conserved(final, trajectory.signal(found))
    first = screen.classes(final).values == "first"
    rows.append(
      {
        "model": name,
        "parameters": found.attrs["parameters"],
        "layers": final.sizes["layer"],
        "heads": first.size,
        "induction": len(screen.circuit(final, "induction")),
        "previous": len(screen.circuit(final, "previous")),
        "first_share": float(first.mean()),
        "with_class": part.by_share[1.0],
        "above_null": part.above_null,
        "null_floor": part.floor,
      }
    )
  return rows


def sizes(measured: Mapping[str, xr.Dataset]) -> list[dict]:
  """A row an architecture, smallest first: means over its seeds, and ranges.

  Args:
    measured: as of `overview`.
  """
  rows = {row["model"]: row for row in overview(measured)}
  found = []
  for names in seeds.alike(measured):
    some = [rows[name] for name in names]
    line = {k: some[0][k] for k in ("parameters", "layers", "heads")}
    line["models"] = len(some)
    for column in ("induction", "previous", "with_class", "above_null"):
      values = [row[column] for row in some]
      line[column] = float(np.mean(values))
      line[f"{column}_low"], line[f"{column}_high"] = min(values), max(values)
    found.append(line)
  return sorted(found, key=lambda line: line["parameters"])


def conserved(found: xr.Dataset) -> list[dict]:
  """The conserved fraction by both estimators and both baselines."""
  final, signal, table = trajectory.last(found), trajectory.signal(found), []
  for baseline in screen.BASELINES:
    part = screen.conserved(final, signal, baseline)
    fractions = {
      f"first {share:.1%} with a class": value
      for share, value in part.by_share.items()
    }
    fractions["above the null"] = part.above_null
    table += [
      {
        "baseline": baseline,
        "estimator": name,
        "fraction": value,
        "null_floor": part.floor,
      }
      for name, value in fractions.items()
    ]
  return table


def verdicts(swept: xr.Dataset) -> list[dict]:
  """A row a circuit; the one whose drop stands out most is marked.

  `differential` is the drop of top-1 less the mean drop of matched random
  heads; `solves` says, of prompts with foils, whether the whole model prefers
  the answer in at least 60% of them.
  """
  preferred = float((swept.base_difference > 0).mean())
  has_foil = bool((swept.base_difference != 0).any())
  table = []
  for name, heads in json.loads(swept.attrs["circuits"]).items():
    judged = verify.verdict(swept, name)
    table.append(
      {
        "circuit": name,
        "heads": spelt(heads),
        "size": len(heads),
        "verdict": judged.name,
        "why": judged.why,
        "base_top1": judged.base,
        "circuit_top1": judged.circuit,
        "upper_top1": judged.upper,
        "drop": judged.drop,
        "random_mean": judged.random_mean,
        "random_largest": judged.random_largest,
        "differential": judged.drop - judged.random_mean,
        "logit_drop": judged.logit_drop,
        "random_logit_mean": judged.random_logit_mean,
        "n_distinct": judged.n_distinct,
        "chance": judged.chance,
        "preferred": preferred if has_foil else float("nan"),
        "solves": preferred >= SOLVED if has_foil else None,
      }
    )
  best = int(np.argmax([row["differential"] for row in table]))
  return [row | {"primary": i == best} for i, row in enumerate(table)]
