"""Which heads of different layers belong together, if not those of one index?

A correspondence gives every head a lane, one head of each layer to a lane. It
is estimated from similarities of heads on the discovery split and tested on
another: do the effects line up in these lanes more than in random ones?
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from headjax.checks import check
from headjax.statistics.effects import as_effects


def match_heads(similarity) -> np.ndarray:
  """The lanes in which heads of different layers are most alike.

  Layer by layer, each is assigned anew to the lanes of all others until
  nothing improves, from several beginnings; the best end is kept.

  Args:
    similarity: `[layer, head, layer, head]`, symmetric; within a layer it does
      not matter.

  Returns:
    `[layer, head]` int, the lane of each head; a head of layer 0 is in the lane
    of its own index.

  Raises:
    ValueError: no such table, or values that are not finite.

  Examples:
    >>> swapped = np.zeros((2, 2, 2, 2))
    >>> swapped[0, 0, 1, 1] = swapped[1, 1, 0, 0] = 1.0
    >>> match_heads(swapped)
    array([[0, 1],
           [1, 0]])

  Source: assignment by the Hungarian method, by layers in turn, as in
    generalised Procrustes matching.
  """
  table = np.array(similarity, np.float64)
  shape = table.shape
  check(
    table.ndim == 4 and shape[:2] == shape[2:] and np.isfinite(table).all(),
    "similarity",
    f"shape {shape}" if np.isfinite(table).all() else "values not finite",
    "a finite table [layer, head, layer, head]",
    "compare all heads of one model with each other",
  )
  layers = np.arange(shape[0])
  table[layers, :, layers] = 0
  ends = [_climb(table, _begin(table, first)) for first in layers]
  best = max(ends, key=lambda heads: _agreement(table, heads))
  best = best[:, np.argsort(best[0])]
  return np.argsort(best, axis=1)


def relabel(effects, labels: np.ndarray) -> np.ndarray:
  """The table with every head moved to the index of its lane.

  Args:
    effects: `[..., layer, head]`.
    labels: `[layer, head]`, from `match_heads`.

  Examples:
    >>> relabel(np.array([[1.0, 2.0]]), np.array([[1, 0]]))
    array([[2., 1.]])
  """
  effects = np.asarray(effects)
  heads = np.argsort(labels, axis=1)
  heads = np.broadcast_to(heads, effects.shape)
  return np.take_along_axis(effects, heads, axis=-1)


def effect_correlations(effects, condition=None) -> np.ndarray:
  """How the effects of any two heads vary together from prompt to prompt.

  Free of how large the effects are; heads that do not vary agree with none.

  Args:
    effects: `[example, layer, head]`.
    condition: `[example]` labels; their means are taken out first, so that a
      difference between conditions is no agreement. None takes out one mean.

  Returns:
    `[layer, head, layer, head]` Pearson correlations.
  """
  table = as_effects(effects)
  shape = table.shape[1:]
  flat = table.reshape(len(table), -1).copy()
  condition = np.zeros(len(flat)) if condition is None else condition
  for one in np.unique(condition):
    flat[condition == one] -= flat[condition == one].mean(axis=0)
  return cosines(flat.T.reshape(*shape, -1))


def cosines(vectors) -> np.ndarray:
  """Cosines between the vectors of any two heads; 0 with a vector of 0.

  Args:
    vectors: `[layer, head, d]`.

  Returns:
    `[layer, head, layer, head]`.
  """
  vectors = np.asarray(vectors, np.float64)
  norm = np.linalg.norm(vectors, axis=-1, keepdims=True)
  unit = np.divide(vectors, norm, out=np.zeros_like(vectors), where=norm > 0)
  return np.einsum("lhd,mjd->lhmj", unit, unit)


def _begin(table: np.ndarray, first: int) -> np.ndarray:
  """Heads by lane: all layers assigned to one of them."""
  n_layers, n_heads = table.shape[:2]
  heads = np.tile(np.arange(n_heads), (n_layers, 1))
  for layer in range(n_layers):
    if layer != first:
      heads[layer] = _assign(table[first, :, layer])
  return heads


def _climb(table: np.ndarray, heads: np.ndarray) -> np.ndarray:
  """Assigns each layer to all others until the agreement stays."""
  before = -np.inf
  while (now := _agreement(table, heads)) > before + 1e-12 * abs(now):
    before = now
    for layer, others in enumerate(table):
      # [head, lane]: how well a head fits what else is in a lane.
      fit = np.take_along_axis(others, heads[None], axis=2).sum(axis=1)
      heads[layer] = _assign(fit.T)
  return heads


def _assign(fit: np.ndarray) -> np.ndarray:
  """The head for each lane, from `[lane, head]`."""
  return linear_sum_assignment(fit, maximize=True)[1]


def _agreement(table: np.ndarray, heads: np.ndarray) -> float:
  """Similarity within lanes, summed over ordered pairs of layers."""
  layers = np.arange(len(heads))
  return float(
    sum(
      table[layers[:, None], one[:, None], layers, one].sum() for one in heads.T
    )
  )
