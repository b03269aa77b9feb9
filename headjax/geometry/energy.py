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

CERTAIN = 0.01  # share of the worst condition that is certain to be full rank


def gram_basis(matrix: jax.Array) -> Basis:
  """`orthonormal_basis` by way of the Gram matrix: much faster, not traced.

  In float64 on the host, so that the rank is as good as that of a float32
  SVD. Columns are orthonormal to about 1e-16 times the square of the
  condition number of the matrix.

  Args:
    matrix: `[..., d_model, k]`, k at most d_model; not a tracer.

  Returns:
    The basis `[..., d_model, k]` in the type of `matrix`, at least float32.

  Examples:
    >>> gram_basis(jnp.array([[3.0, 6.0], [4.0, 8.0]])).rank
    Array(1, dtype=int32)
  """
  dtype = jnp.promote_types(jnp.asarray(matrix).dtype, jnp.float32)
  matrix = np.asarray(matrix)
  columns = np.empty(matrix.shape, dtype)
  rank = np.empty(matrix.shape[:-2], np.int32)
  for index in np.ndindex(matrix.shape[:-3]):
    one = matrix[index].astype(np.float64)
    inverse, rank[index] = _inverse_root(one.mT @ one)
    columns[index] = one @ inverse
  return Basis(jnp.asarray(columns), jnp.asarray(rank))


def isotropic_covariance(W_O: np.ndarray) -> np.ndarray:
  """Of changes whose writes have energy 1, spread evenly over all they can be.

  Args:
    W_O: `[..., d_head, d_model]`.

  Returns:
    C `[..., d_head, d_head]` float64: (W_O W_O^T)^+ / rank. What such writes
    leave in a space is PK / rank.
  """
  inverse, rank = _inverse_root(write_gram(W_O))
  return inverse @ inverse.mT / np.maximum(rank, 1)[..., None, None]


def write_gram(W_O: np.ndarray) -> np.ndarray:
  """`[..., d_head, d_head]` float64: W_O W_O^T."""
  W_O = np.asarray(W_O)
  gram = np.empty((*W_O.shape[:-1], W_O.shape[-2]))
  for index in np.ndindex(W_O.shape[:-3]):
    one = W_O[index].astype(np.float64)
    gram[index] = one @ one.mT
  return gram


def energy(W_O: np.ndarray, covariance: np.ndarray) -> np.ndarray:
  """`[...]` float64: the energy of what is written, tr(W_O^T C W_O).

  Args:
    W_O: `[..., d_head, d_model]`.
    covariance: `[..., d_head, d_head]`.
  """
  return (write_gram(W_O) * covariance).sum(axis=(-2, -1))


@jax.jit
def received(
  W_O: jax.Array, covariance: jax.Array, rows: jax.Array
) -> jax.Array:
  """The energy that some heads leave in the spaces of others.

  Nearly all of it is one product of all writers with all readers, whatever
  the number of covariances: of A^T that product keeps A A^T, and each
  covariance then costs `d_head**2` a pair.

  Args:
    W_O: `[writer, d_head, d_model]`.
    covariance: `[n, writer, d_head, d_head]`, several to each writer.
    rows: `[reader, k, d_model]`, orthonormal or zero: columns, transposed.

  Returns:
    `[n, writer, reader]`.
  """
  n_writers, d_head, d_model = W_O.shape
  A = matmul(rows.reshape(-1, d_model), W_O.reshape(-1, d_model).T)
  A = A.reshape(*rows.shape[:2], n_writers, d_head).swapaxes(1, 2)
  squares = matmul(A.mT, A)
  found = [(squares * one[None]).sum(axis=(-2, -1)).T for one in covariance]
  return jnp.stack(found)


def _inverse_root(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """T with T T^T the pseudoinverse and T^T G T a projector, and the rank."""
  try:
    inverse = np.linalg.inv(np.linalg.cholesky(gram)).mT
  except np.linalg.LinAlgError:
    return _inverse_root_by_eigenvalues(gram)
  # At least the ratio of the extreme eigenvalues.
  condition = np.trace(gram, axis1=-2, axis2=-1) * (inverse**2).sum((-2, -1))
  if (condition < CERTAIN * RANK_TOLERANCE**-2).all():
    return inverse, np.full(gram.shape[:-2], gram.shape[-1])
  return _inverse_root_by_eigenvalues(gram)


def _inverse_root_by_eigenvalues(gram):
  """The same whatever the rank, at four times the cost."""
  square, turn = np.linalg.eigh(gram)
  live = square > RANK_TOLERANCE**2 * square[..., -1:]
  inverse = np.where(live, 1 / np.sqrt(np.where(live, square, 1)), 0)
  return turn * inverse[..., None, :], np.count_nonzero(live, axis=-1)
