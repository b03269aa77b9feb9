"""Does a released cell follow from its own numbers? Everything, recomputed."""

import dataclasses

from headjax.statistics.ratios import Ratios
from headjax.statistics.shuffled_control import (
  candidate_count,
  shuffled_control,
)
from headjax.studies.writers import released_labels, released_numbers
from headjax.studies.writers.comparing import Comparison
from headjax.studies.writers.discovery import Discovery, choose
from headjax.studies.writers.released import Head, Released
from headjax.studies.writers.released_labels import by_role, listed


@dataclasses.dataclass(frozen=True)
class Report:
  """What a released cell says when it is recomputed.

  Attributes:
    comparisons: of every statistic.
    mismatches: labels that do not follow, a line each.
    notes: what was found, a line each.
  """

  comparisons: list[Comparison]
  mismatches: list[str]
  notes: list[str]

  @property
  def agrees(self) -> bool:
    """Whether every statistic and every label was reproduced."""
    return not self.mismatches and all(c.agrees for c in self.comparisons)


def check_released(
  cell: Released, *, draws: int = 20_000, seed: int = 0
) -> Report:
  """Recomputes every statistic and every label of a released cell.

  Args:
    cell: as it was released.
    draws: resamples for intervals and p-values.
    seed: of the resamples.
  """
  control = shuffled_control(
    cell.numbers["real_dla"], cell.numbers["real_SE"], cell.shuffled
  )
  found = choose(control, q=cell.q)
  ours = released_numbers.resample(cell, draws=draws, seed=seed)
  return Report(
    comparisons=[
      *released_numbers.of_heads(cell, control),
      *released_numbers.of_pairs(cell),
      *released_numbers.of_shares(cell, ours),
      released_numbers.of_second_seed(cell),
      *released_numbers.of_draws(cell, ours),
    ],
    mismatches=[
      *released_labels.of_heads(cell, found),
      *released_labels.of_candidates(cell, found),
      *released_labels.of_paths(cell, ours),
    ],
    notes=_notes(cell, found, ours),
  )


def _notes(
  cell: Released, found: Discovery, ours: dict[Head, Ratios]
) -> list[str]:
  """What the cell says, by our numbers and our draws alone."""
  lines = [
    f"{cell.task}, {cell.model}: {len(cell.heads)} heads, "
    f"{found.n_significant} significant at q = {cell.q:g}, "
    f"K = {candidate_count(found.n_significant)}, "
    f"{found.n_candidates} candidates"
  ]
  named = by_role(cell, ours, [ours[head].p[0] for head in cell.paths])
  theirs = {"writer": cell.writers, "canceller": cell.cancellers}
  for role, heads in named.items():
    lines.append(f"{len(heads)} {role}s by our draws: {listed(heads)}")
    if heads != theirs[role]:
      lines.append(f"  expected: {listed(theirs[role])}")
  return lines
