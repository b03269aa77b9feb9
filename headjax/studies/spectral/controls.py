"""Which heads are ablated beside a circuit, to see whether it is the circuit?

circuit  its heads
random   as many other heads in the same layers, many draws
sweep    the same, one draw for each seed 0, 1, ..., as the source reports
upper    all heads of these layers
single   each of its heads alone
"""

import collections
import dataclasses
from collections.abc import Sequence

import numpy as np

from headjax.checks import check

ROLES = ("circuit", "upper", "random", "sweep", "single")
DRAWS, SEEDS, SEED = 40, 10, 123

Head = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Controls:
  """The groups of one circuit.

  Attributes:
    roles: of each group, one of ROLES.
    groups: `[group, layer, head]` bool.
    short: layers with fewer eligible heads than the circuit has there.
  """

  roles: tuple[str, ...]
  groups: np.ndarray
  short: tuple[int, ...]


def controls(
  heads: Sequence[Head],
  shape: tuple[int, int],
  *,
  selected: Sequence[Head] = (),
  draws: int = DRAWS,
  seeds: int = SEEDS,
  seed: int = SEED,
) -> Controls:
  """The circuit and what it is compared with.

  Args:
    heads: (layer, head) of the circuit, at least one.
    shape: layers and heads of the model.
    selected: other heads that no random draw may take, because the screen
      selected them too.
    draws: of matched random heads.
    seeds: of the source's sweep.
    seed: of the draws.

  Raises:
    ValueError: no head, or heads that the model lacks.

  Source: paper B, step 3; 40 draws are ours.
  """
  members = _mark(heads, shape)
  check(
    members.any(), "circuit", "no head", "at least one", "lower the threshold"
  )
  free = ~(members | _mark(selected, shape))
  counts = collections.Counter(np.nonzero(members)[0].tolist())
  short = tuple(a for a, n in counts.items() if free[a].sum() < n)
  random = np.random.RandomState(seed)
  upper = np.zeros_like(members)
  upper[list(counts)] = True
  parts = {
    "circuit": [members],
    "upper": [upper],
    "random": [_matched(random, free, counts) for _ in range(draws)],
    "sweep": [
      _matched(np.random.RandomState(s), free, counts) for s in range(seeds)
    ],
    "single": [_mark([h], shape) for h in sorted(set(map(tuple, heads)))],
  }
  roles = tuple(role for role, found in parts.items() for _ in found)
  return Controls(roles, np.stack(sum(parts.values(), [])), short)


def _matched(random, free: np.ndarray, counts: dict[int, int]) -> np.ndarray:
  """As many heads of each layer, or all that are eligible."""
  found = np.zeros_like(free)
  for layer, n in sorted(counts.items()):
    eligible = np.flatnonzero(free[layer])
    chosen = random.choice(eligible, min(n, len(eligible)), replace=False)
    found[layer, chosen] = True
  return found


def _mark(heads: Sequence[Head], shape: tuple[int, int]) -> np.ndarray:
  """`[layer, head]` bool."""
  found = np.zeros(shape, bool)
  for layer, head in heads:
    check(
      0 <= layer < shape[0] and 0 <= head < shape[1],
      "circuit",
      f"head ({layer}, {head})",
      f"layers below {shape[0]}, heads below {shape[1]}",
      "choose heads of this model",
    )
    found[layer, head] = True
  return found
