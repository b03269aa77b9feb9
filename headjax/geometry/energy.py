"""How much of the energy of what a head writes lies in what another reads?

A head's changes dz, pooled over examples and positions, matter here only by
their covariance, the `[d_head, d_head]` sum of dz^T dz: the energy that they
write is tr(W_O^T C W_O), and what of it lies in a space with the orthonormal
columns Q is tr(A^T C A) with A = W_O Q.
"""

import jax
import jax.numpy as jnp
import numpy as np

from headjax.geometry.precision import matmul
from headjax.geometry.subspaces import RANK_TOLERANCE, Basis


def gram_basis(matrix: jax.Array) -> Basis:
  """`orthonormal_basis` by way of the Gram matrix: much faster, not traced.

  In float64 on the host, so that the rank is as good as that of a float32
  SVD. Columns are orthonormal to about 1e-16 times the square of the
  condition number of the matrix.

  Args:
    matrix: `[..., d_model, k]`, k at most d_model; not a tracer.

  Returns:
    The basis `[..., d_model, k]` in the type of `matrix`, at least float32.

  Example:
    >>> gram_basis(jnp.array([[3.0, 6.0], [4.0, 8.0]])).rank
    Array(1, dtype=int32)
  """
  dtype = jnp.promote_types(jnp.asarray(matrix).dtype, jnp.float32)
  matrix = np.asarray(matrix, np.float64)
  inverse, turn = _inverse_squares(matrix.mT @ matrix)
  columns = matrix @ (turn * np.sqrt(inverse)[..., None, :])
  rank = np.count_nonzero(inverse, axis=-1)
  return Basis(jnp.asarray(columns, dtype), jnp.asarray(rank, jnp.int32))


def isotropic_covariance(W_O: np.ndarray) -> np.ndarray:
  """Of changes whose writes have energy 1, spread evenly over all they can be.

  Args:
    W_O: `[..., d_head, d_model]`.

  Returns:
    C `[..., d_head, d_head]` float64: (W_O W_O^T)^+ / rank. What such writes
    leave in a space is PK / rank.
  """
  inverse, turn = _inverse_squares(write_gram(W_O))
  rank = np.count_nonzero(inverse, axis=-1)
  scale = inverse / np.maximum(rank, 1)[..., None]
  return (turn * scale[..., None, :]) @ turn.mT


def write_gram(W_O: np.ndarray) -> np.ndarray:
  """`[..., d_head, d_head]` float64: W_O W_O^T."""
  W_O = np.asarray(W_O, np.float64)
  return W_O @ W_O.mT


def energy(W_O: np.ndarray, covariance: np.ndarray) -> np.ndarray:
  """`[...]` float64: the energy of what is written, tr(W_O^T C W_O).

  Args:
    W_O: `[..., d_head, d_model]`.
    covariance: `[..., d_head, d_head]`.
  """
  return (write_gram(W_O) * covariance).sum(axis=(-2, -1))


@jax.jit
def received(
  W_O: jax.Array, covariance: jax.Array, columns: jax.Array
) -> jax.Array:
  """The energy that some heads leave in the spaces of others.

  Args:
    W_O: `[writer, d_head, d_model]`.
    covariance: `[n, writer, d_head, d_head]`, several to each writer.
    columns: `[reader, d_model, k]`, orthonormal or zero.

  Returns:
    `[n, writer, reader]`.
  """
  n_readers, d_model, k = columns.shape
  side_by_side = jnp.moveaxis(columns, 0, 1).reshape(d_model, -1)
  # One wide product of all writers with all readers.
  A = matmul(W_O.reshape(-1, d_model), side_by_side)
  A = A.reshape(1, *W_O.shape[:2], -1)
  both = (matmul(covariance, A) * A).sum(axis=-2)
  return both.reshape(*both.shape[:-1], n_readers, k).sum(axis=-1)


def _inverse_squares(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Inverse eigenvalues, 0 for those that count as zero, and eigenvectors."""
  square, turn = np.linalg.eigh(gram)
  live = square > RANK_TOLERANCE**2 * square[..., -1:]
  return np.where(live, 1 / np.where(live, square, 1), 0), turn
