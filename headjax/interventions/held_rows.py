"""How do many (source head, hold) pairs become calls of one program?

A row is one source head under one hold. The rows of a call share the source
layer and their number is always the same, so there is one compile.
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence

import numpy as np

from headjax.interventions import chunks, suffix
from headjax.interventions.prepared import Chunk
from headjax.interventions.rerun import Hold
from headjax.interventions.sweep import drop
from headjax.models.compiling import fast_jit
from headjax.models.load import LoadedModel


@dataclasses.dataclass(frozen=True)
class Call:
  """Some rows of one source layer.

  Attributes:
    layer: of the sources.
    heads: `[n]`, the source heads; the last rows may be repeats.
    hold: `[n, layer, ...]`, what each row keeps clean.
    sources: `[m]` indices of the sources, m <= n, and
    holds: `[m]` of the holds, whose effects the first rows are.
  """

  layer: int
  heads: np.ndarray
  hold: Hold
  sources: np.ndarray
  holds: np.ndarray

  def run(self, model: LoadedModel, chunk: Chunk) -> np.ndarray:
    """`[m, batch]` effects."""
    found = _rows(
      model.model, chunk.params, chunk.shared, chunk.metric, chunk.base,
      self.layer, self.heads, self.hold,
    )  # fmt: skip
    return np.asarray(found)[: len(self.sources)]


def calls(
  sources: Sequence[tuple[int, int]], holds: Sequence[Hold], most: int
) -> Iterator[Call]:
  """All pairs of a source and a hold, at most `most` a call.

  Args:
    sources: heads (layer, head).
    holds: of the whole model.
    most: rows of a call.
  """
  layers, heads = np.array(sources).T
  by_layer = {
    layer: np.flatnonzero(layers == layer) for layer in np.unique(layers)
  }
  size = min(most, len(holds) * max(map(len, by_layer.values())))
  for layer, members in by_layer.items():
    source = np.repeat(members, len(holds))
    hold = np.tile(np.arange(len(holds)), len(members))
    for rows, place in chunks.slices(len(source), size):
      at = [(holds[hold[row]], heads[source[row]]) for row in rows]
      yield Call(
        int(layer),
        heads[source[rows]],
        Hold(
          np.stack([held.heads[layer, head] for held, head in at]),
          np.stack([held.mlps[layer, head] for held, head in at]),
        ),
        source[place],
        hold[place],
      )


@functools.partial(fast_jit, static_argnames=("model",))
def _rows(model, params, shared, metric, base, layer, heads, hold):
  """`[n, batch]` effects of some heads of one layer."""
  resid, changed = suffix.sweep_layer(model, params, shared, layer, heads, hold)
  return drop(model, params, metric, base, resid, changed)
