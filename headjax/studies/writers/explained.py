"""How do the groups work? Every number of the mechanism, from saved datasets.

Tables are lists of rows; one for which a dataset is missing, or for which a
group has no heads, is not there.
"""

import types
from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr

from headjax.interventions.mean_patching import ranked
from headjax.statistics.resampling import Interval
from headjax.studies.writers import rule_outs
from headjax.studies.writers.cell import GROUPS, Cell
from headjax.studies.writers.controls import attenuation
from headjax.studies.writers.explaining import (
  cascade_sources,
  control_groups,
  roles,
)
from headjax.studies.writers.mechanism import (
  attention_sources,
  coverage,
  directions,
  downstream,
  source_labels,
)
from headjax.studies.writers.released import name_of

Rows = list[dict[str, object]]
Data = Mapping[str, xr.Dataset]
INDUCTION_HEADS = 10
TOP = 20  # of Todd's ranking


def tables(
  data: Data, found: Cell, *, draws: int = 10_000, seed: int = 0
) -> dict[str, Rows]:
  """All tables that the datasets allow.

  Args:
    data: of `explain`.
    found: the cell.
    draws: of all resamples and permutations.
    seed: of these.

  Returns:
    Name of TABLES -> rows.
  """
  groups = roles(found)
  made = {}
  for name, (needed, both, make) in TABLES.items():
    enough = all(groups) if both else any(groups)
    if enough and all(part in data for part in needed):
      made[name] = make(data, found, draws, seed)
  return made


def _attention(data, found, draws, seed) -> Rows:
  """Whether the groups look at different tokens."""
  sources = data["sources"]
  return attention_sources(
    sources.attention.values, sources.source.values.tolist(), *roles(found),
    draws=draws, seed=seed,
  )  # fmt: skip


def _sources(data, found, draws, seed) -> Rows:
  """From which tokens every head takes what it writes."""
  sources = data["sources"]
  names = sources.source.values.tolist()
  label = source_labels(sources.attribution.values, names)
  mean = sources.attribution.mean("example").values
  return [
    {"head": name_of(head), "role": role, "kind": str(label[head])}
    | {name: float(x) for name, x in zip(names, mean[head], strict=True)}
    for head, role in _with_roles(found)
  ]


def _geometry(data, found, draws, seed) -> Rows:
  """How the mean writes lie, and which group comes first."""
  writers, cancellers = roles(found)
  lie = directions(data["writes"]["mean"].values, writers, cancellers)
  return [
    {
      "cosine": lie.cosine,
      "projection": lie.projection,
      "orthogonal": lie.orthogonal,
      "downstream": downstream(writers, cancellers),
      "cancellers": len(cancellers),
    }
  ]


def _coverage(data, found, draws, seed) -> Rows:
  """How much of each group the ranking by mean patching finds."""
  order = ranked(data["mean-patching"].effect.values)
  size = ranked(
    np.abs(data["mean-patching"].effect.mean("example").values)[None]
  )
  rows = []
  for role, heads in zip(("writer", "canceller"), roles(found), strict=True):
    among, count = coverage(order, heads, TOP)
    rows.append(
      {
        "role": role,
        "among": among,
        "among_by_size": coverage(size, heads, TOP)[0],
        "count": count,
        "top": TOP,
      }
    )
  return rows


def _rank_one(data, found, draws, seed) -> Rows:
  """Whether a head's OV has but one direction."""
  share = data["writes"].top_share.values
  return [
    {
      "head": name_of(head),
      "role": role,
      "top_share": float(share[head]),
      "rank_one": bool(share[head] > rule_outs.RANK_ONE),
    }
    for head, role in _with_roles(found)
  ]


def _values(data, found, draws, seed) -> Rows:
  """Whether a head's write depends on where its values are."""
  values = data["values"]
  rows = rule_outs.head_changes(
    values.attribution.values, values.changed.values,
    sum(roles(found), []), draws=draws, seed=seed,
  )  # fmt: skip
  named = [role for _, role in _with_roles(found)]
  return [
    {"head": row["head"], "role": role} | row
    for row, role in zip(rows, named, strict=True)
  ]


def _cascade(data, found, draws, seed) -> Rows:
  """Whether cancellers write something else without a writer before them."""
  cascade, rows = data["cascade"], []
  at = zip(
    cascade.source_layer.values.tolist(), cascade.source_head.values.tolist(),
    strict=True,
  )  # fmt: skip
  place = {head: i for i, head in enumerate(at)}
  for head, sources in cascade_sources(data["writes"], found).items():
    for source in sources:
      [row] = rule_outs.head_changes(
        cascade.attribution.values, cascade.changed.values[[place[source]]],
        [head], draws=draws, seed=seed,
      )  # fmt: skip
      rows.append({"head": row["head"], "without": name_of(source)} | row)
  return rows


def _importance(data, found, draws, seed) -> Rows:
  """Whether heads matter for rules only."""
  losses = data["importance"]
  heads = sum(roles(found), [])
  changes = []
  for kind in ("rules", "texts"):
    change = (losses[kind] - losses[f"{kind}_base"]).mean(
      losses[f"{kind}_base"].dims
    )
    changes.append(Interval(change.values, change.values, change.values))
  rows = rule_outs.importance(heads, *changes)
  named = [role for _, role in _with_roles(found)]
  return [
    {"head": row["head"], "role": role} | row
    for row, role in zip(rows, named, strict=True)
  ]


def _induction(data, found, draws, seed) -> Rows:
  """The overlap with induction heads."""
  score = data["induction"].score.sel(kind="induction").values
  top = ranked(score)[:INDUCTION_HEADS]
  law = rule_outs.overlap(top, sum(roles(found), []), score[0].size)
  return [
    {
      "shared": law.count,
      "expected": law.expected,
      "sd": law.sd,
      "p_more": law.p_more,
      "p_equal": rule_outs.equivalence([law]),
      "heads": " ".join(map(name_of, top)),
    }
  ]


def _controls(data, found, draws, seed) -> Rows:
  """Whether other heads of the same size attenuate each other, too."""
  lesions = data["controls"]
  change = (lesions.lesioned - lesions.base).mean("example").values
  rows = []
  for i, (first, second) in enumerate(control_groups(found)):
    changes = dict(zip(GROUPS, change[3 * i : 3 * i + 3].tolist(), strict=True))
    name = ("W and C", "largest")[i] if i < 2 else f"control {i - 2}"
    rows.append(
      {"groups": name, "first": len(first), "second": len(second)}
      | changes
      | {"attenuation": attenuation(changes)}
    )
  return rows


def _with_roles(found: Cell):
  """Every writer and canceller with its role, in the order of `roles`."""
  for role, heads in zip(("writer", "canceller"), roles(found), strict=True):
    for head in heads:
      yield head, role


# Table -> the datasets that it needs, whether it needs heads in both groups,
# and what makes it.
TABLES: Mapping[str, tuple[tuple[str, ...], bool, Callable[..., Rows]]] = (
  types.MappingProxyType(
    {
      "attention": (("sources",), True, _attention),
      "sources": (("sources",), False, _sources),
      "geometry": (("writes",), True, _geometry),
      "coverage": (("mean-patching",), False, _coverage),
      "rank-one": (("writes",), False, _rank_one),
      "values": (("values",), False, _values),
      "cascade": (("cascade", "writes"), True, _cascade),
      "importance": (("importance",), False, _importance),
      "induction": (("induction",), False, _induction),
      "controls": (("controls",), False, _controls),
    }
  )
)
