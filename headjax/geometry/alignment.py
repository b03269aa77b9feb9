"""Do several models hold the same thing, in coordinates of their own?

Two subspaces of the stream may have nothing in common (`overlap` at chance) and
yet carry the same coordinates of the same inputs, up to a linear map
(`canonical_correlations` at 1). Float64 on the host; coordinates are centred.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from headjax.checks import check, fail
from headjax.outline import of_fields, table_of_fields

# A singular value below this fraction of the largest one counts as zero.
_TOLERANCE = 1e-8


class Consensus(NamedTuple):
  """What several models' coordinates share.

  Attributes:
    shared: `[n, r]`, orthonormal columns: values of the samples.
    agreement: `[r]` in [1 / models, 1], descending: the mean over models of
      how much of a column is a linear function of the model's activations.
    bases: one `[d, r]` a model, orthonormal: where it holds the columns.
  """

  shared: np.ndarray
  agreement: np.ndarray
  bases: tuple[np.ndarray, ...]

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def overlap(a: np.ndarray, b: np.ndarray) -> float:
  """||A^T B||_F^2 / sqrt(r_a r_b) of two subspaces: 1 if they are equal.

  Two random ones of rank r in d dimensions give r / d on average.

  Args:
    a: `[d, r_a]`, orthonormal columns.
    b: `[d, r_b]`, orthonormal columns.

  Examples:
    >>> overlap(np.eye(4)[:, :2], np.eye(4)[:, 1:3])
    0.5
  """
  check(
    a.shape[0] == b.shape[0] and a.shape[1] > 0 and b.shape[1] > 0,
    "subspaces",
    f"shapes {a.shape} and {b.shape}",
    "[d, r] with the same d and r of at least 1",
    "compare cores of models of one width",
  )
  common = (a.T @ b) ** 2
  return float(common.sum() / np.sqrt(a.shape[1] * b.shape[1]))


def canonical_correlations(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """The correlations of the best matched linear functions of two sets.

  Args:
    a: `[n, r_a]`, one row a sample.
    b: `[n, r_b]`, of the same samples.

  Returns:
    `[min of the ranks]`, descending, in [0, 1]; empty where one is constant.
    With fewer samples than r_a + r_b some are 1 whatever the data.

  Source: Hotelling (1936), through the singular vectors of the centred
    coordinates (Bjorck and Golub, 1973): no ridge, and directions without
    variance are dropped.
  """
  _check_samples([a, b])
  common = _whitened(a).T @ _whitened(b)
  return np.clip(np.linalg.svd(common, compute_uv=False), 0, 1)


def consensus(views: Sequence[np.ndarray], rank: int) -> Consensus:
  """The coordinates that all models share best, and where each holds them.

  Args:
    views: one `[n, d]` a model, activations of the same samples.
    rank: of the consensus; at most what the views span together.

  Source: paper D's control; the form of Kettenring (1971) that maximises the
    variance of the whitened views' first components (MAXVAR).
  """
  _check_samples(views)
  whitened = [_whitened(view) for view in views]
  U, s, _ = np.linalg.svd(np.hstack(whitened), full_matrices=False)
  spanned = int((s > _TOLERANCE * s.max(initial=0)).sum())
  check(
    0 < rank <= spanned,
    "rank",
    rank,
    f"1 to {spanned}, what the views span",
    "ask for fewer directions",
  )
  shared = U[:, :rank]
  bases = tuple(_holding(view, shared) for view in views)
  return Consensus(shared, s[:rank] ** 2 / len(views), bases)


def weight_cosine(a: Any, b: Any) -> float:
  """The cosine between all parameters of two models of one shape.

  Args:
    a: a parameter tree.
    b: another one, with the same leaves.
  """
  if jax.tree.structure(a) != jax.tree.structure(b):
    fail(
      "parameters", "two different trees", "the same leaves",
      "compare models of one config",
    )  # fmt: skip
  flat = [
    np.concatenate([np.ravel(np.asarray(x, np.float64)) for x in leaves])
    for leaves in (jax.tree.leaves(a), jax.tree.leaves(b))
  ]
  return float(flat[0] @ flat[1] / np.prod([np.linalg.norm(x) for x in flat]))


def _whitened(view: np.ndarray) -> np.ndarray:
  """`[n, rank]`: an orthonormal basis of the centred columns."""
  centred = np.asarray(view, np.float64)
  centred = centred - centred.mean(axis=0)
  U, s, _ = np.linalg.svd(centred, full_matrices=False)
  # What is left of a constant after centring is a rounding of its size.
  floor = 1e-12 * np.abs(view).max(initial=0) * np.sqrt(view.size)
  return U[:, s > max(_TOLERANCE * s.max(initial=0), floor)]


def _holding(view: np.ndarray, shared: np.ndarray) -> np.ndarray:
  """Where a view holds the columns: its least-squares weights, as a basis."""
  centred = view - view.mean(axis=0)
  weights = np.linalg.lstsq(centred, shared, rcond=_TOLERANCE)[0]
  return np.linalg.qr(weights)[0]


def _check_samples(views: Sequence[np.ndarray]) -> None:
  shapes = [np.shape(view) for view in views]
  same = all(len(shape) == 2 and shape[0] == shapes[0][0] for shape in shapes)
  check(
    len(views) >= 2 and same and shapes[0][0] >= 2,
    "views",
    f"shapes {shapes}",
    "two or more [n, d], all of the same n samples",
    "record every model on the same inputs",
  )
