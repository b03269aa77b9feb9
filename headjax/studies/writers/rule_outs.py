"""Are cancellers something else, known by another name? The paper's checks.

Induction heads, heads that matter everywhere, copy suppressors of rank one, and
heads that only answer an earlier writer: functions of measurements, all of
them. Any heads of the same size are in `controls`.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from scipy import stats

from headjax.checks import check
from headjax.statistics.bca import bca_mean
from headjax.statistics.resampling import Interval
from headjax.studies.writers.released import Head, name_of

SPECIFIC, GENERIC = 5.0, 1.5  # ratios of losses
RANK_ONE = 0.5  # share of the squared norm


@dataclasses.dataclass(frozen=True)
class Overlap:
  """How many of a group are among some other heads, and what chance gives.

  Attributes:
    count: shared heads.
    expected: their mean number, were the group any heads.
    sd: standard deviation of that number.
    p_more: chance of as many or more.
  """

  count: int
  expected: float
  sd: float
  p_more: float

  @property
  def deviate(self) -> float:
    """(count - expected) / sd; 0 where only one count is possible."""
    return (self.count - self.expected) / self.sd if self.sd else 0.0


def overlap(
  others: Sequence[Head], group: Sequence[Head], n_heads: int
) -> Overlap:
  """The overlap of two sets of heads against the hypergeometric law.

  Args:
    others: heads such as the first ten induction heads.
    group: writers and cancellers.
    n_heads: of the model.

  Examples:
    >>> overlap([(0, 0), (0, 1)], [(0, 1)], 4).expected
    0.5

  Source: paper C, overlap with induction heads.
  """
  group, others = set(group), set(others)
  count, share = len(group & others), len(group) / n_heads
  expected = len(others) * share
  rest = (n_heads - len(others)) / max(n_heads - 1, 1)
  more = stats.hypergeom.sf(count - 1, n_heads, len(group), len(others))
  return Overlap(
    count, expected, float(np.sqrt(expected * (1 - share) * rest)), float(more)
  )


def equivalence(overlaps: Sequence[Overlap], margin: float = 1.0) -> float:
  """Whether overlaps are those of chance: the p of two one-sided tests.

  Args:
    overlaps: of several cells.
    margin: distance of the mean deviate from 0 that would be a difference, in
      standard deviations of a single count.

  Returns:
    p of a mean deviate beyond the margin; small: as chance gives. One cell
    alone cannot give less than 0.16.

  Source: paper C, a margin of one standard deviation.
  """
  check(len(overlaps) > 0, "overlaps", 0, "at least one", "measure a cell")
  mean = np.mean([found.deviate for found in overlaps])
  root = np.sqrt(len(overlaps))
  tails = stats.norm.sf([(mean + margin) * root, (margin - mean) * root])
  return float(tails.max())


def importance(
  heads: Sequence[Head], on_rules: Interval, on_text: Interval
) -> list[dict[str, object]]:
  """Whether heads matter for rules only, or everywhere.

  Args:
    heads: (layer, head).
    on_rules: `[head]` changes of the loss of answers without each, in nats.
    on_text: `[head]` changes of the loss of other text.

  Returns:
    One row for each: both changes, the ratio of their sizes, and its name.

  Source: paper C: a ratio of 5 or more is specific to rules, one below 1.5
    generally important.
  """
  rows = []
  for i, head in enumerate(heads):
    rules, text = float(on_rules.estimate[i]), float(on_text.estimate[i])
    ratio = abs(rules) / abs(text) if text else (np.inf if rules else np.nan)
    rows.append(
      {
        "head": name_of(head),
        "rules": rules,
        "text": text,
        "ratio": float(ratio),
        "kind": _kind(ratio),
      }
    )
  return rows


def _kind(ratio: float) -> str:
  if np.isnan(ratio):
    return "no effect"
  if ratio >= SPECIFIC:
    return "rule-specific"
  return "generally important" if ratio < GENERIC else "between"


def head_changes(
  before, after, heads: Sequence[Head], *, draws: int = 10_000, seed: int = 0
) -> list[dict[str, object]]:
  """How much the attributions of heads change, and whether surely.

  Args:
    before: `[example, layer, head]` in logits.
    after: `[condition, example, layer, head]`; conditions are averaged.
    heads: (layer, head) to report.
    draws: resamples of the examples.
    seed: of the resamples.

  Returns:
    One row for each: attribution, change with its BCa interval, the change as
    a share of the attribution, and whether the interval excludes 0.
  """
  before = np.asarray(before, np.float64)
  change = np.asarray(after, np.float64).mean(axis=0) - before
  rows = []
  for head in heads:
    found = bca_mean(change[:, *head], draws=draws, seed=seed)
    own = float(before[:, *head].mean())
    rows.append(
      {
        "head": name_of(head),
        "attribution": own,
        "change": found.estimate,
        "low": found.low,
        "high": found.high,
        "share": found.estimate / own if own else float("nan"),
        "sure": bool(found.low > 0 or found.high < 0),
      }
    )
  return rows


def upstream_writers(
  head: Head, writers: Sequence[Head], writes, top_write, count: int = 3
) -> list[Head]:
  """The earlier writers most opposed to what a head writes.

  Args:
    head: (layer, head).
    writers: (layer, head) each.
    writes: `[layer, head, d_model]` mean writes at the answer.
    top_write: `[layer, head, d_model]` the first direction of each head's OV,
      of any sign: it is turned to the side of the head's mean write.
    count: at most so many.

  Source: paper C, the V-cascade.
  """
  direction = np.asarray(top_write[head], np.float64)
  own = np.asarray(writes[head])
  direction = direction if direction @ own >= 0 else -direction
  before = [writer for writer in writers if writer[0] < head[0]]
  sizes = {w: np.linalg.norm(writes[w]) or 1.0 for w in before}
  before.sort(key=lambda w: float(writes[w] @ direction) / sizes[w])
  return before[:count]
