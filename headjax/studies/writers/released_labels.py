"""Do the labels of a released cell follow from its numbers? A line if not."""

import numpy as np

from headjax.statistics.multiplicity import benjamini_hochberg, rejected
from headjax.statistics.ratios import Ratios
from headjax.statistics.shuffled_control import candidate_count, candidates
from headjax.studies.writers.discovery import Discovery
from headjax.studies.writers.paths import roles
from headjax.studies.writers.released import Head, Released, name_of

# |z| from which a head is called large in the released figures.
LARGE_Z = 2.0


def of_heads(cell: Released, found: Discovery) -> list[str]:
  """Flags and classes of the heads that do not follow from z."""
  lines, refined = [], found.control.refined
  large = np.abs(found.control.z) >= LARGE_Z
  for i, head in enumerate(cell.heads):
    surely = found.significant[i]
    labels = {
      "passes_bh_fdr_q": (bool(surely), bool(cell.passes_bh[i])),
      "passes_z": (bool(large[i]), bool(cell.passes_z[i])),
      "classification": (
        _class(surely, large[i], refined[i]),
        cell.classes[i],
      ),
    }
    lines += _differing(name_of(head), labels)
  return lines


def _class(significant: bool, large: bool, refined: float) -> str:
  """What the released figures call a head."""
  if not significant and not large:
    return "Rule-aware-unused (refined)"
  side = "writer" if refined > 0 else "Anti-writer"
  return f"{side} ({'refined' if significant else 'z-only, fails FDR'})"


def of_candidates(cell: Released, found: Discovery) -> list[str]:
  """The count of the candidate rule, and sets that do not follow from it."""
  k = candidate_count(found.n_significant)
  none = np.zeros(len(cell.heads), bool)
  top = candidates(found.control.mean, none, minimum=k)
  sets = {
    "writers_refined": found.writers,
    "cancellers_refined": found.cancellers,
    "top_by_dla": top,
  }
  sets = {
    name: {cell.heads[i] for i in np.flatnonzero(chosen)}
    for name, chosen in sets.items()
  }
  lines = _differing("screened", {"pp_screen_k": (k, cell.screen_k)})
  for name, ours in sets.items():
    lines += _differing_sets(name, ours, cell.sets[name])
  ours = set.union(*sets.values())
  lines += _differing_sets("path_patching", ours, set(cell.paths))
  for head, path in cell.paths.items():
    label = "canceller"
    if head in sets["writers_refined"]:
      label = "writer"
    elif head in sets["top_by_dla"]:  # of cancellers too
      label = "TOP-BY-DLA"
    lines += _differing(name_of(head), {"discovery_label": (label, path.label)})
  return lines


def of_paths(cell: Released, ours: dict[Head, Ratios]) -> list[str]:
  """Flags, writers and cancellers that do not follow.

  They follow from our shares and the released p-values: whether a head passes
  must not hang on our draws.
  """
  p = [path.p["direct"] for path in cell.paths.values()]
  passes = rejected(benjamini_hochberg(p), cell.q)
  lines = []
  for mine, (head, path) in zip(passes, cell.paths.items(), strict=True):
    label = bool(mine), path.passes
    lines += _differing(name_of(head), {"pp_passes_bh_fdr_q": label})
  named = by_role(cell, ours, p)
  theirs = {"writer": cell.writers, "canceller": cell.cancellers}
  for role, heads in theirs.items():
    lines += _differing_sets(f"expected {role}s", named[role], heads)
  return lines


def by_role(
  cell: Released, ours: dict[Head, Ratios], p
) -> dict[str, set[Head]]:
  """Role -> candidates.

  Args:
    cell: as it was released.
    ours: recomputed shares.
    p: `[candidate]` of the direct shares.
  """
  share = [ours[head].mean[0] for head in cell.paths]
  found = roles(share, benjamini_hochberg(p), q=cell.q)
  return {
    role: {
      head for head, own in zip(cell.paths, found, strict=True) if own == role
    }
    for role in ("writer", "canceller")
  }


def listed(heads: set[Head]) -> str:
  """The names of some heads, in order."""
  return ", ".join(map(name_of, sorted(heads))) or "none"


def _differing(where: str, labels: dict[str, tuple]) -> list[str]:
  """A line for every label that is not what it should be."""
  return [
    f"{where}: {name} is {theirs!a:.40}, recomputed {ours!a}"
    for name, (ours, theirs) in labels.items()
    if ours != theirs
  ]


def _differing_sets(name: str, ours: set[Head], theirs: set[Head]) -> list[str]:
  found = []
  if theirs - ours:
    found.append(f"{name}: {listed(theirs - ours)} there, not recomputed")
  if ours - theirs:
    found.append(f"{name}: {listed(ours - theirs)} recomputed, not there")
  return found
