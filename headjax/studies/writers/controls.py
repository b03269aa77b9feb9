"""Would any heads of the same size oppose each other? Matched groups."""

from collections.abc import Mapping, Sequence

import numpy as np

from headjax.checks import check
from headjax.studies.writers.released import Head


def signed_groups(attribution, count: int) -> tuple[list[Head], list[Head]]:
  """The heads of largest attribution, by its sign.

  Args:
    attribution: `[layer, head]` means.
    count: heads of both signs together.

  Source: paper C, whose released controls take these and not the path-patched
    writers and cancellers.
  """
  chosen = _by_size(attribution)[:count]
  mean = np.asarray(attribution)
  return (
    [head for head in chosen if mean[head] > 0],
    [head for head in chosen if mean[head] < 0],
  )


def nearest_controls(
  attribution,
  first: Sequence[Head],
  second: Sequence[Head],
  *,
  count: int = 10,
  seed: int = 0,
) -> list[tuple[list[Head], list[Head]]]:
  """Random splits of other heads whose attributions are as large.

  Args:
    attribution: `[layer, head]` means.
    first: heads of one group.
    second: heads of the other.
    count: splits.
    seed: of the splits.

  Returns:
    Groups of the same sizes; every member is matched, the largest first, with
    the nearest size among the heads that are in neither group and not taken.

  Raises:
    ValueError: there are not as many other heads.

  Source: paper C, rank-nearest controls.
  """
  mean = np.abs(np.asarray(attribution))
  members = [*first, *second]
  others = [h for h in _by_size(attribution) if h not in members]
  check(
    len(others) >= len(members) > 0,
    "heads",
    f"{len(members)} in the groups and {len(others)} others",
    "as many others as members",
    "there are no controls in so small a model",
  )
  pool = []
  for head in sorted(members, key=lambda h: -mean[h]):
    pool.append(min(others, key=lambda h: abs(mean[h] - mean[head])))
    others.remove(pool[-1])
  rng, n = np.random.default_rng(seed), len(first)
  found = []
  for _ in range(count):
    order = [pool[i] for i in rng.permutation(len(pool))]
    found.append((order[:n], order[n:]))
  return found


def attenuation(changes: Mapping[str, float]) -> float:
  """|W| + |C| - |both|, of changes without each group."""
  one, other, both = (
    abs(changes[name]) for name in ("writers", "cancellers", "both")
  )
  return one + other - both


def _by_size(attribution) -> list[Head]:
  mean = np.abs(np.asarray(attribution))
  order = np.argsort(-mean, axis=None, kind="stable")
  return [tuple(map(int, divmod(i, mean.shape[1]))) for i in order.tolist()]
