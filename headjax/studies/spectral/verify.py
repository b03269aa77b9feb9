"""Does the model need these heads, or any heads of these layers? Step 3.

The verdict compares the loss of right answers without a circuit with that
without as many random heads of its layers, and asks whether these layers can
matter that much at all.
"""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from headjax.checks import check_choice
from headjax.data.probes import Probe
from headjax.interventions import chunks
from headjax.interventions.ablations import ablate_groups
from headjax.models.load import LoadedModel
from headjax.studies.spectral.controls import DRAWS, SEEDS, Head, controls

VERDICTS = ("causal", "not causal", "undetermined")
RULE = (
  "causal: the drop of top-1 exceeds that of all matched random draws, is"
  " positive and at least 3 times their mean, and without all heads of these"
  " layers top-1 is at most 10% of the whole model's; undetermined: a layer"
  " has too few other heads, or the whole model is right in less than 5 times"
  " as many rows as a guess"
)
_TIMES, _LEFT, _ABOVE_CHANCE = 3, 0.1, 5


def verify(
  model: LoadedModel,
  probe: Probe,
  circuits: Mapping[str, Sequence[Head]],
  *,
  selected: Sequence[Head] = (),
  draws: int = DRAWS,
  seeds: int = SEEDS,
  budget_bytes: int = 2 * chunks.GIB,
  folder: str | os.PathLike | None = None,
  progress: bool = False,
) -> xr.Dataset:
  """Ablates circuits and all that they are compared with, in one sweep.

  A previous-token circuit, measured on the rows of induction, is the paper's
  compositional test.

  Args:
    model: from `load_model`.
    probe: rows with a right answer each.
    circuits: name -> heads (layer, head).
    selected: heads that no random draw may take; those of the circuit itself
      never are.
    draws: of matched random heads, for the verdict.
    seeds: of the source's sweep of random heads.
    budget_bytes: memory per device, beside the parameters.
    folder: where groups are kept as they are done, as in `ablate_groups`.
    progress: whether to show a progress bar.

  Returns:
    The dataset of `ablate_groups`, whose groups have the coordinates
    `circuit`, its name, and `role`. The attribute `circuits` is JSON: name ->
    heads, and `short`, name -> layers with too few other heads.

  Raises:
    ValueError: an empty circuit, or what `ablate_groups` refuses.
  """
  shape = model.config.n_layers, model.config.n_heads
  made = {
    name: controls(heads, shape, selected=selected, draws=draws, seeds=seeds)
    for name, heads in circuits.items()
  }
  found = ablate_groups(
    model,
    probe,
    np.concatenate([c.groups for c in made.values()]),
    budget_bytes=budget_bytes,
    folder=folder,
    progress=progress,
  )
  names = [name for name, c in made.items() for _ in c.roles]
  roles = [role for c in made.values() for role in c.roles]
  plain = {k: [list(map(int, h)) for h in v] for k, v in circuits.items()}
  return found.assign_coords(
    circuit=("group", names), role=("group", roles)
  ).assign_attrs(
    circuits=json.dumps(plain),
    short=json.dumps({name: c.short for name, c in made.items()}),
    rule=RULE,
  )


@dataclasses.dataclass(frozen=True)
class Verdict:
  """Whether a circuit is needed, and the numbers behind it.

  Drops are those of the whole model minus those of the ablated one.

  Attributes:
    name: one of VERDICTS.
    why: the first condition that failed; "" if none did.
    base: share of right answers of the whole model.
    circuit: without the circuit.
    upper: without all heads of its layers.
    drop: `base` less `circuit`.
    random_mean: mean drop without matched random heads.
    random_largest: the largest of these drops.
    n_distinct: how many different random groups there were.
    chance: share of right answers of a guess.
    logit_drop: of the answer's mean logit, in logits (nats).
    random_logit_mean: the same without matched random heads, their mean, and
    random_logit_largest: the largest.
  """

  name: str
  why: str
  base: float
  circuit: float
  upper: float
  drop: float
  random_mean: float
  random_largest: float
  n_distinct: int
  chance: float
  logit_drop: float
  random_logit_mean: float
  random_logit_largest: float


def verdict(found: xr.Dataset, circuit: str) -> Verdict:
  """The verdict on one circuit of a saved sweep, by RULE.

  Args:
    found: from `verify`.
    circuit: its name.

  Source: paper B, step 3: clearly larger than matched random, and an upper
    bound near 0; the numbers are ours.
  """
  mine = _of(found, circuit)
  base, chance = float((found.base_rank == 0).mean()), found.attrs["chance"]
  right, logit = (mine["rank"] == 0).mean("example"), mine.logit.mean("example")
  lost = float(found.base_logit.mean()) - logit
  whole = float(right[mine.role == "circuit"][0])
  upper = float(right[mine.role == "upper"][0])
  random = base - right[mine.role == "random"].values
  groups = mine.members[mine.role == "random"].values
  drop, mean, largest = base - whole, float(random.mean()), float(random.max())
  name, why = _judge(
    drop, mean, largest, upper, base, chance,
    json.loads(found.attrs["short"])[circuit],
  )  # fmt: skip
  logits = lost[mine.role == "random"]
  return Verdict(
    name, why, base, whole, upper, drop, mean, largest,
    len(np.unique(groups, axis=0)), float(chance),
    float(lost[mine.role == "circuit"][0]),
    float(logits.mean()), float(logits.max()),
  )  # fmt: skip


def _judge(drop, mean, largest, upper, base, chance, short) -> tuple[str, str]:
  """The name, and the first reason against it."""
  if short:
    layers = ", ".join(map(str, short))
    return "undetermined", f"too few other heads in layer {layers}"
  if base < _ABOVE_CHANCE * chance:
    return "undetermined", "the whole model does not do the task"
  for failed, why in (
    (drop <= 0, "nothing is lost without the circuit"),
    (drop <= largest, "some random heads matter as much"),
    (drop < _TIMES * max(mean, 0), "random heads matter a third as much"),
    (upper > _LEFT * base, "the task survives without these layers"),
  ):
    if failed:
      return "not causal", why
  return "causal", ""


def rows(found: xr.Dataset) -> list[dict]:
  """A row for each circuit and role: means, and the spread over its draws.

  Loss and logits are in nats; `top1_sd`, `top1_low` and `top1_high` are over
  the groups of that role.
  """
  table = [
    {"circuit": "", "role": "base", "groups": 1} | _scores(found, "base_")
  ]
  for circuit in json.loads(found.attrs["circuits"]):
    mine = _of(found, circuit)
    for role in dict.fromkeys(mine.role.values.tolist()):
      part = mine.isel(group=np.flatnonzero(mine.role.values == role))
      if role == "single":
        table += [
          {"circuit": circuit, "role": f"single {_names(one)}", "groups": 1}
          | _scores(one, "")
          for _, one in part.groupby("group")
        ]
        continue
      table.append(
        {"circuit": circuit, "role": role, "groups": part.sizes["group"]}
        | _scores(part, "")
      )
  return table


def shares(found: xr.Dataset) -> dict[str, dict[str, np.ndarray]]:
  """Circuit -> role -> the shares of right answers of its groups.

  The role "base" is the whole model.
  """
  base = np.atleast_1d(float((found.base_rank == 0).mean()))
  panels = {}
  for circuit in json.loads(found.attrs["circuits"]):
    mine = _of(found, circuit)
    right = (mine["rank"] == 0).mean("example").values
    roles = mine.role.values
    panels[circuit] = {"base": base} | {
      str(role): right[roles == role] for role in np.unique(roles)
    }
  return panels


def _scores(part: xr.Dataset, prefix: str) -> dict[str, float]:
  """Means over rows and groups."""
  rank = part[f"{prefix}rank"]
  top1 = np.atleast_1d((rank == 0).mean("example").values)
  return {
    "top1": float(top1.mean()),
    "top1_sd": float(top1.std(ddof=1)) if len(top1) > 1 else float("nan"),
    "top1_low": float(top1.min()),
    "top1_high": float(top1.max()),
    "top5": float((rank < 5).mean()),
    "loss": float(part[f"{prefix}loss"].mean()),
    "logit": float(part[f"{prefix}logit"].mean()),
    "difference": float(part[f"{prefix}difference"].mean()),
    "preferred": float((part[f"{prefix}difference"] > 0).mean()),
  }


def _names(part: xr.Dataset) -> str:
  heads = np.argwhere(part.members.values.reshape(part.members.shape[-2:]))
  return " ".join(f"L{layer}H{head}" for layer, head in heads)


def _of(found: xr.Dataset, circuit: str) -> xr.Dataset:
  check_choice("circuit", circuit, json.loads(found.attrs["circuits"]))
  return found.isel(group=np.flatnonzero(found.circuit.values == circuit))
