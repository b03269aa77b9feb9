"""Which numbers does the study print? Rows, from saved measurements alone."""

import json

import numpy as np
import xarray as xr

from headjax.data.probes import PLAIN
from headjax.studies.spectral import development, screen, trajectory, verify

SOLVED = 0.6  # share of prompts in which the indirect object is preferred


def circuits(found: xr.Dataset) -> dict[str, list[screen.Head]]:
  """The circuits of the last checkpoint; kinds without a head are left out.

  Of prompts with an indirect object also the name movers and the heads of
  S-inhibition, and both together.
  """
  final = trajectory.last(found)
  kinds = ["induction", "previous"]
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
  for kind in ("induction", "previous"):
    heads = screen.circuit(final, kind)
    tables[f"recall_{kind}"] = development.recall(found, kind)
    tables[f"leads_{kind}"] = trajectory.leads(found, kind, heads)
    tables[f"along_{kind}"] = development.along(found, kind, heads)
  if (found.step.values > 0).sum() >= 2:
    tables["integral"] = trajectory.rows(found)
  return tables


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
        "heads": " ".join(f"L{layer}H{head}" for layer, head in heads),
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
