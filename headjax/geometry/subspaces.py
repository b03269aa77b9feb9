"""Which directions of the stream does a head read, and which does it write?

A subspace is a `Basis`; wherever one is asked for, a matrix whose columns span
it will do. Leading axes, usually `[layer, head]`, are a batch throughout.
Weights have the layout in which they are stored, acting on row vectors:
W_Q, W_K, W_V `[..., d_model, d_head]`, W_O `[..., d_head, d_model]`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check
from headjax.geometry.precision import matmul
from headjax.outline import of_fields, table_of_fields

# A singular value below this fraction of the largest one counts as zero.
RANK_TOLERANCE = 1e-6


class Basis(NamedTuple):
  """Orthonormal columns and how many of them there really are.

  Attributes:
    columns: `[..., d_model, k]`, orthonormal up to the rank, zero beyond it.
    rank: `[...]` int, dimension of the subspace.
  """

  columns: jax.Array
  rank: jax.Array

  __repr__ = of_fields
  _repr_html_ = table_of_fields


Subspace = jax.Array | Basis


def orthonormal_basis(matrix: jax.Array) -> Basis:
  """An orthonormal basis of the space that the columns span.

  The rank counts singular values above 1e-6 of the largest one, which is
  little above the rounding of float32: near that bound use float64. First
  derivatives are right for functions of the subspace, which do not change when
  the basis is rotated within it; they hold the rank fixed.

  Args:
    matrix: `[..., d_model, k]`; half precision is raised to float32.

  Returns:
    The basis `[..., d_model, min(d_model, k)]`; not finite if `matrix` is not.

  Examples:
    >>> orthonormal_basis(jnp.array([[3.0, 6.0], [4.0, 8.0]])).rank
    Array(1, dtype=int32)
  """
  matrix = jnp.asarray(matrix)
  dtype = jnp.promote_types(matrix.dtype, jnp.float32)
  return _orthonormalise(matrix.astype(dtype))


def write_space(W_O: jax.Array) -> Basis:
  """The space that a head can write, whatever it attends to.

  Args:
    W_O: `[..., d_head, d_model]`.

  Returns:
    Basis `[..., d_model, d_head]`.

  Source: paper A, section 3 (U).
  """
  return orthonormal_basis(jnp.asarray(W_O).mT)


def weight_read_space(W: jax.Array) -> Basis:
  """The space that a weight reads, norm left out.

  Args:
    W: `[..., d_model, d_head]`: W_Q, W_K or W_V.

  Returns:
    Basis `[..., d_model, d_head]`.

  Source: paper A, section 3 (R_X0, where W_X is our W transposed).
  """
  return orthonormal_basis(W)


def folded_read_space(W: jax.Array, gain: jax.Array, *, centred: bool) -> Basis:
  """The space that a weight reads through its norm, Im(P_c diag(gain) W).

  Small moves of the stream outside it reach the head only by changing the
  norm's scale. For a block reader pass the block's W and gain: the result, in
  block coordinates, loses one dimension to centring; `embed` puts it into the
  stream.

  Args:
    W: `[..., d_model, d_head]`: W_Q, W_K or W_V.
    gain: `[..., d_model]`, leading axes those of `W` or 1.
    centred: whether the norm subtracts the mean: a LayerNorm does, an RMSNorm
      does not.

  Returns:
    Basis `[..., d_model, d_head]`.

  Raises:
    ValueError: if `gain` does not fit `W`.

  Examples:
    >>> folded_read_space(jnp.eye(4), jnp.ones(4), centred=True).rank
    Array(3, dtype=int32)

  Source: paper A, section 3 (R_X, where W_X is our W transposed).
  """
  return orthonormal_basis(fold(W, gain, centred=centred))


def fold(W: jax.Array, gain: jax.Array, *, centred: bool) -> jax.Array:
  """The map that a weight and the linear parts of its norm are together.

  Args:
    W: `[..., d_model, d_head]`.
    gain: `[..., d_model]`, leading axes those of `W` or 1.
    centred: as in `folded_read_space`.

  Returns:
    P_c diag(gain) W, `[..., d_model, d_head]`.

  Raises:
    ValueError: if `gain` does not fit `W`.
  """
  W, gain = jnp.asarray(W), jnp.asarray(gain)
  check(
    gain.ndim == W.ndim - 1 and gain.shape[-1] == W.shape[-2],
    "gain",
    f"shape {gain.shape}",
    f"[..., d_model] for W of shape {W.shape}",
    "add axes of length 1 where W has more",
  )
  folded = gain[..., None] * W
  if centred:
    folded = folded - folded.mean(axis=-2, keepdims=True)
  return folded


def embed(block: Basis, frame: jax.Array) -> Basis:
  """Takes a subspace from block coordinates to the stream.

  Args:
    block: basis `[..., d_head, k]` in the coordinates of a block.
    frame: `[..., d_model, d_head]`, the block's orthonormal columns.

  Returns:
    Basis `[..., d_model, k]`.
  """
  return Basis(matmul(frame, block.columns), block.rank)


def as_basis(space: Subspace) -> Basis:
  """The basis of a subspace that may be given by a matrix."""
  return space if isinstance(space, Basis) else orthonormal_basis(space)


def check_pair(a: Basis, b: Basis) -> None:
  """Fails unless two bases live in one stream and batch together.

  Args:
    a: `[..., d_model, d_a]`.
    b: `[..., d_model, d_b]`, leading axes as in `a`, or of length 1.

  Raises:
    ValueError: if they do not.
  """
  a_shape, b_shape = a.columns.shape, b.columns.shape
  check(
    len(a_shape) == len(b_shape)
    and a_shape[-2] == b_shape[-2]
    and all(
      x == y or 1 in (x, y)
      for x, y in zip(a_shape[:-2], b_shape[:-2], strict=True)
    ),
    "b",
    f"shape {b_shape}",
    f"[..., d_model, d_b] to match a of shape {a_shape}",
    "give both the same d_model, and leading axes that are equal or 1",
  )


@jax.jit
def _orthonormalise(matrix: jax.Array) -> Basis:
  """One compiled program per shape."""
  return Basis(*_columns_and_rank(matrix))


@jax.custom_jvp
def _columns_and_rank(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
  """The fields of a Basis."""
  return _decompose(matrix)[0]


@_columns_and_rank.defjvp
def _columns_and_rank_jvp(primals, tangents):
  """Moves the columns out of the subspace only.

  The rule of the SVD divides by differences of singular values, which are all
  zero for an orthogonal basis.
  """
  (columns, rank), back = _decompose(*primals)
  moved = matmul(*tangents, back)
  moved = moved - matmul(columns, matmul(columns.mT, moved))
  return (columns, rank), (moved, np.zeros(rank.shape, jax.dtypes.float0))


def _decompose(matrix: jax.Array):
  """(columns, rank) and the `back` with columns = matrix @ back."""
  u, s, vh = jnp.linalg.svd(matrix, full_matrices=False)
  live = s > RANK_TOLERANCE * s[..., :1]
  # A product, not a choice, so that the nan of a bad matrix stays visible.
  columns = u * live[..., None, :].astype(u.dtype)
  inverse = jnp.where(live, 1 / jnp.where(live, s, 1), 0)
  back = vh.mT * inverse[..., None, :]
  return (columns, live.sum(axis=-1, dtype=jnp.int32)), back
