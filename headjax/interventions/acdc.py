"""Which edges does a model need for a task? ACDC, one decision an edge.

All edges are present. Receivers are visited from the unembedding back to the
first layer, the MLP of a layer before its heads, those from the last to the
first and their inputs in the order Q, K, V; the edges into a receiver, from the
latest sender to the earliest. An edge whose absence raises the metric by less
than the threshold is removed for good. A part that nothing reads any more is
dropped with all its edges, without a decision.

Each decision depends on those before it. The search speculates that the next
ones in a layer all turn out like most of the last few, measures them in one
batch, and accepts up to the first that does not; the result is that of deciding
one by one. Batches grow while the guesses are right, and shrink where not.

Source: Conmy et al. 2023, algorithm 1; the order is that of their code.
"""

import collections
import dataclasses
import itertools
from collections.abc import Callable, Iterator

import numpy as np

from headjax.checks import check
from headjax.interventions import nodes
from headjax.models.config import ModelConfig
from headjax.outline import of_fields, table_of_fields

# The graph of all edges is the model: its metric is 0 but for rounding.
START = 1e-5
RECENT = 8  # decisions that the guess goes by
Evaluate = Callable[[np.ndarray, int], np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Circuit:
  """What a search left.

  Attributes:
    present: `[receiver, sender]` bool.
    rise: `[receiver, sender]` by what the metric rose without the edge when it
      was decided on; nan where there was no decision.
    value: the metric of the circuit.
    decisions: how many edges were decided on.
    batches: how many batches of measurements that took.
  """

  present: np.ndarray
  rise: np.ndarray
  value: float
  decisions: int
  batches: int

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def search(
  config: ModelConfig,
  evaluate: Evaluate,
  threshold: float,
  *,
  speculate: int = 1,
  progress: Callable[[int], None] | None = None,
) -> Circuit:
  """Removes edges as long as the metric stays low.

  Args:
    config: of the model.
    evaluate: from masks `[n, receiver, sender]` of 0 and 1, and the first layer
      that lacks edges, to the metric of each, which is to stay low and is 0
      with all edges.
    threshold: tau, in the metric's unit.
    speculate: most decisions measured at once; 1 is the definition.
    progress: called with the number of decisions made.

  Raises:
    ValueError: a threshold or number that is not positive, or a metric that is
      not 0 with all edges.
  """
  check(threshold > 0, "threshold", threshold, "more than 0", "raise it")
  check(speculate > 0, "speculate", speculate, "1 or more", "pass 1")
  present = nodes.possible(config)
  rise = np.full(present.shape, np.nan)
  value = float(evaluate(present[None], 0)[0])
  check(
    abs(value) < START,
    "metric",
    f"{value:.3g} with all edges",
    "0",
    "measure the distance from the whole model",
  )
  order, place, batches, decisions = _order(config), 0, 0, 0
  sizes, size, recent = _sizes(speculate), 0, collections.deque(maxlen=RECENT)
  while True:
    # What was decided lately is the guess.
    guess = 2 * sum(recent) < len(recent) + 1
    ahead = _speculation(config, order, place, present, guess)
    ahead = list(itertools.islice(ahead, sizes[size]))
    if not ahead:
      break
    masks = np.stack([step.mask for step in ahead])
    filled = masks[np.minimum(np.arange(sizes[size]), len(ahead) - 1)]
    values = evaluate(filled, ahead[0].layer)
    batches += 1
    for step, found in zip(ahead, values.tolist(), strict=False):
      rise[step.edge] = found - value
      keep = found - value >= threshold
      present = step.kept() if keep else step.mask
      value = value if keep else found
      place, decisions = step.place + 1, decisions + 1
      recent.append(keep)
      if keep == guess:
        break  # the guess was wrong: what follows was measured in vain
    right = keep != guess
    size = min(size + 1, len(sizes) - 1) if right else max(size - 1, 0)
    if progress:
      progress(decisions)
  present = _without_dropped(config, present)
  return Circuit(present, rise, value, decisions, batches)


def _sizes(speculate: int) -> list[int]:
  """Of batches: a few, for each is a program of its own."""
  sizes = [1]
  while sizes[-1] < speculate:
    sizes.append(min(4 * sizes[-1], speculate))
  return sizes


@dataclasses.dataclass(frozen=True)
class _Step:
  """A decision to be made: the edge, its place in the order, the mask without.

  `layer` is the first layer that may lack edges then.
  """

  edge: tuple[int, int]
  place: int
  layer: int
  mask: np.ndarray

  def kept(self) -> np.ndarray:
    """The mask with the edge put back."""
    mask = self.mask.copy()
    mask[self.edge] = True
    return mask


def _order(config: ModelConfig) -> list[tuple[int, int]]:
  """All edges in the order of the decisions."""
  receivers, there = nodes.receivers(config), nodes.possible(config)
  letters = {letter: i for i, letter in enumerate("QKVG")}

  def key(r):
    node = receivers[r]
    late = config.n_layers if node.kind == "unembedding" else node.layer
    return -late, node.kind != "mlp", -node.head, letters.get(node.letter, 0)

  return [
    (r, int(s))
    for r in sorted(range(len(receivers)), key=key)
    for s in np.flatnonzero(there[r])[::-1]
  ]


def _speculation(config, order, place, present, removes) -> Iterator[_Step]:
  """The decisions in one layer, if each were to remove, or keep, its edge."""
  receivers = nodes.receivers(config)
  own = _own_sender(config)
  mask, first = present, None
  for i in range(place, len(order)):
    r, s = order[i]
    if own[r] is not None and not mask[:, own[r]].any():
      if mask[r].any():
        mask = mask.copy()
        mask[r] = False
      continue
    last = receivers[r].kind == "unembedding"
    layer = config.n_layers if last else receivers[r].layer
    first = layer if first is None else first
    if layer != first:
      return
    without = mask.copy()
    without[r, s] = False
    step = _Step((r, s), i, layer, without)
    yield step
    mask = without if removes else mask


def _own_sender(config: ModelConfig) -> list[int | None]:
  """Of every receiver, which sender is the same part; None: the last."""
  index = {node: i for i, node in enumerate(nodes.senders(config))}
  return [index.get(node.sender) for node in nodes.receivers(config)]


def _without_dropped(config, present: np.ndarray) -> np.ndarray:
  """Without the edges into parts that nothing reads."""
  present = present.copy()
  own = _own_sender(config)
  for r in reversed(range(len(own))):
    if own[r] is not None and not present[:, own[r]].any():
      present[r] = False
  return present
