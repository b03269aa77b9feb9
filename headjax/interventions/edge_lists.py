"""Which edges join a head to a later one?

An edge is a row `(source layer, source head, layer, head, input)`; the input
is an index into `headjax.models.spaces.inputs`, "QKV" or, with the gate of a
screening model, "QKVG". In a 12 x 12 model there are 28,512.
"""

from collections.abc import Sequence

import numpy as np

from headjax.checks import check
from headjax.models.config import ModelConfig
from headjax.models.spaces import inputs

COLUMNS = ("source_layer", "source_head", "layer", "head", "input")


def all_edges(
  config: ModelConfig, layers: Sequence[int] | None = None
) -> np.ndarray:
  """Every edge from a head to an input of a later head.

  Args:
    config: of the model.
    layers: that both ends must lie in; default all.

  Returns:
    `[edge, 5]` int in the order of `COLUMNS`, sorted by the readers' layer.
  """
  n_layers, n_heads = config.n_layers, config.n_heads
  layers = range(n_layers) if layers is None else sorted(set(layers))
  wrong = [layer for layer in layers if not 0 <= layer < n_layers]
  check(
    not wrong,
    "layers",
    wrong,
    f"layers 0 to {n_layers - 1}",
    "name layers of this model",
  )
  heads = np.arange(n_heads)
  found = [
    np.stack(np.meshgrid(s, heads, r, heads, letters, indexing="ij"), -1)
    for r in layers
    for s in layers
    if s < r
    for letters in [np.arange(len(inputs(config)))]
  ]
  return np.concatenate([x.reshape(-1, 5) for x in found] or [np.empty((0, 5))])


def sample_edges(edges: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
  """A random share of some edges, in their order.

  Args:
    edges: `[edge, 5]`.
    share: in (0, 1]; at least one edge is drawn.
    seed: of the draw, without replacement.
  """
  check(
    0 < share <= 1,
    "share",
    share,
    "more than 0 and at most 1",
    "choose a share",
  )
  size = max(1, round(share * len(edges)))
  drawn = np.random.default_rng(seed).choice(len(edges), size, replace=False)
  return edges[np.sort(drawn)]


def check_edges(config: ModelConfig, edges: np.ndarray) -> np.ndarray:
  """The edges as integers, if the model has them all."""
  edges = np.asarray(edges)
  check(
    edges.ndim == 2 and edges.shape[1] == 5 and len(edges) > 0
    and np.issubdtype(edges.dtype, np.integer),
    "edges",
    f"{edges.dtype} of shape {edges.shape}",
    "integers [edge, 5], at least one edge",
    f"give one row of {', '.join(COLUMNS)} per edge",
  )  # fmt: skip
  source, layer = edges[:, 0], edges[:, 2]
  ends = [config.n_layers, config.n_heads] * 2 + [len(inputs(config))]
  good = ((edges >= 0) & (edges < ends)).all(1) & (source < layer)
  check(
    bool(good.all()),
    "edges",
    f"row {edges[np.argmin(good)].tolist()}",
    "a head, and an input of a head in a later layer",
    f"give {', '.join(COLUMNS)} below {ends}",
  )
  return edges
