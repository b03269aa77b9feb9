"""How do writers and cancellers differ? In what they see, write, and where.

Everything here is a function of measurements and of the two groups.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from headjax.checks import check
from headjax.statistics.multiplicity import holm
from headjax.statistics.partitions import Partitions, partitions

CONTENT = ("demo_input", "demo_label", "query_input")
SINK = ("bos", "format")

Head = tuple[int, int]


def attention_sources(
  attention,
  names: Sequence[str],
  writers: Sequence[Head],
  cancellers: Sequence[Head],
  *,
  draws: int = 10_000,
  seed: int = 0,
) -> list[dict[str, object]]:
  """Whether the groups look at different tokens.

  Args:
    attention: `[example, layer, head, source]` shares of attention.
    names: `[source]`.
    writers: heads (layer, head); both groups need one.
    cancellers: likewise.
    draws: exchanges of the labels, if there are more than so many.
    seed: of the exchanges.

  Returns:
    One row for each source: means over the heads of each group, their
    difference, its two-sided p and the p after Holm, over the sources.

  Source: paper C, attention sources.
  """
  mean = np.asarray(attention, np.float64).mean(axis=0)
  splits = _splits(writers, cancellers, draws, seed)
  values = np.stack([mean[head] for head in (*writers, *cancellers)])
  differences = group_differences(splits, values)
  p = [splits.p_value(column) for column in differences.T]
  return [
    {
      "source": name,
      "writers": float(values[: len(writers), i].mean()),
      "cancellers": float(values[len(writers) :, i].mean()),
      "difference": float(differences[0, i]),
      "p": p[i],
      "p_holm": float(adjusted),
    }
    for i, (name, adjusted) in enumerate(zip(names, holm(p), strict=True))
  ]


def group_differences(splits: Partitions, values: np.ndarray) -> np.ndarray:
  """`[split, column]` differences of the means of both groups.

  Args:
    splits: of the members.
    values: `[member, column]`.
  """
  first = splits.first.astype(float)
  n = first.sum(axis=1, keepdims=True)
  second = 1 - first
  return first @ values / n - second @ values / second.sum(1, keepdims=True)


def source_labels(attribution, names: Sequence[str]) -> np.ndarray:
  """Whether a head writes what it takes from content, or from sinks.

  Args:
    attribution: `[example, layer, head, source]` in logits.
    names: `[source]`, which include CONTENT and SINK.

  Returns:
    `[layer, head]` of "content" and "sink", by the larger absolute mean.

  Source: paper C, attribution per source.
  """
  mean = np.asarray(attribution, np.float64).mean(axis=0)
  names = list(names)
  parts = [
    np.abs(mean[..., [names.index(name) for name in group]].sum(axis=-1))
    for group in (CONTENT, SINK)
  ]
  return np.where(parts[0] >= parts[1], "content", "sink")


@dataclasses.dataclass(frozen=True)
class Directions:
  """How the mean writes of both groups stand to each other.

  Attributes:
    cosine: of the two.
    projection: of the cancellers' on the writers', in units of the latter:
      negative where they oppose.
    orthogonal: share of the cancellers' norm that the writers' direction does
      not explain.
  """

  cosine: float
  projection: float
  orthogonal: float


def directions(
  writes, writers: Sequence[Head], cancellers: Sequence[Head]
) -> Directions:
  """The geometry of what the groups write on average.

  Args:
    writes: `[layer, head, d_model]` mean writes at the answer.
    writers: heads (layer, head); both groups need one.
    cancellers: likewise.

  Source: paper C, geometry of OV: alpha = <c, w> / <w, w>, and
    |c - alpha w| / |c|.
  """
  _check_groups(writers, cancellers)
  writes = np.asarray(writes, np.float64)
  w, c = (
    np.mean([writes[head] for head in group], axis=0)
    for group in (writers, cancellers)
  )
  alpha = float(c @ w / (w @ w))
  sizes = np.linalg.norm(w), np.linalg.norm(c)
  rest = np.linalg.norm(c - alpha * w) / sizes[1]
  return Directions(float(c @ w / np.prod(sizes)), alpha, float(rest))


def downstream(writers: Sequence[Head], cancellers: Sequence[Head]) -> int:
  """How many cancellers are in a later layer than some writer."""
  first = min((layer for layer, _ in writers), default=np.inf)
  return sum(layer > first for layer, _ in cancellers)


def coverage(
  ranked: Sequence[Head], group: Sequence[Head], count: int = 20
) -> tuple[int, int]:
  """How many of a group are among the first of a ranking, and of how many.

  Examples:
    >>> coverage([(0, 1), (2, 0), (1, 1)], [(2, 0), (1, 1)], count=2)
    (1, 2)

  Source: paper C, coverage of Todd's top 20.
  """
  return len(set(ranked[:count]) & set(group)), len(group)


def _splits(writers, cancellers, draws: int, seed: int) -> Partitions:
  _check_groups(writers, cancellers)
  labels = np.arange(len(writers) + len(cancellers)) < len(writers)
  return partitions(labels, limit=draws, seed=seed)


def _check_groups(writers, cancellers) -> None:
  check(
    len(writers) > 0 and len(cancellers) > 0,
    "groups",
    f"{len(writers)} writers and {len(cancellers)} cancellers",
    "at least one of each",
    "there is nothing to compare",
  )
