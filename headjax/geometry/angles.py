"""In which directions do two subspaces meet, and how closely?"""

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import fail
from headjax.geometry.precision import matmul
from headjax.geometry.subspaces import Basis, Subspace, as_basis, check_pair


def principal_angles(a: Subspace, b: Subspace) -> jax.Array:
  """Principal angles between two subspaces.

  0 is a shared direction, pi / 2 an orthogonal one. Errors are a few roundings
  of 1 at either end of the range, and derivatives are finite there.

  Args:
    a: `[..., d_model, d_a]`, columns span the first subspace.
    b: `[..., d_model, d_b]`, columns span the second; leading axes as in `a`,
      or of length 1.

  Returns:
    `[..., min(d_a, d_b, d_model)]` angles in radians, ascending, in
    [0, pi / 2]; nan beyond the smaller of the two ranks.

  Raises:
    ValueError: if the shapes do not match, or the columns of a matrix are
      linearly dependent (concrete matrices only; under jit its missing angles
      are nan, as they are for a Basis, which states its rank).

  Examples:
    >>> principal_angles(jnp.eye(3)[:, :1], jnp.eye(3)[:, 1:2])
    Array([1.5707964], dtype=float32)

  Source: Bjorck and Golub (1973): cosines from the SVD of Q_a^T Q_b, sines from
    that of Q_b - Q_a Q_a^T Q_b, each used where it is accurate.
  """
  a, b = _full_rank_basis("a", a), _full_rank_basis("b", b)
  check_pair(a, b)
  if a.columns.shape[-1] < b.columns.shape[-1]:
    a, b = b, a
  return _angles(a, b)


@jax.jit
def _angles(a: Basis, b: Basis) -> jax.Array:
  """Angles of `a` with the no wider `b`."""
  common = matmul(a.columns.mT, b.columns)
  rest = b.columns - matmul(a.columns, common)
  cosine, sine = (jnp.linalg.svd(x, compute_uv=False) for x in (common, rest))
  # Sines come in descending order, then one 0 for every zero column of b.
  place = jnp.arange(cosine.shape[-1])
  place = place.reshape((1,) * b.rank.ndim + (-1,))
  turned = jnp.maximum(b.rank[..., None] - 1 - place, 0)
  turned = jnp.broadcast_to(turned, sine.shape)
  sine = jnp.take_along_axis(sine, turned, axis=-1)
  near = cosine**2 > 0.5
  angle = jnp.where(
    near,
    jnp.arcsin(jnp.where(near, sine, 0)),
    jnp.arccos(jnp.where(near, 0, cosine)),
  )
  known = place < jnp.minimum(a.rank, b.rank)[..., None]
  return jnp.where(known, angle, jnp.nan)


def _full_rank_basis(name: str, space: Subspace) -> Basis:
  """A basis; fails if it is known that a matrix has dependent columns."""
  basis = as_basis(space)
  if isinstance(space, Basis) or isinstance(basis.rank, jax.core.Tracer):
    return basis
  width, rank = np.shape(space)[-1], np.asarray(basis.rank)
  short = np.argwhere(rank < width)
  if len(short):
    first = tuple(short[0].tolist())
    fail(
      name,
      f"rank {rank[first]} at index {first}; {len(short)} such in all",
      f"{width} independent columns",
      f"pass orthonormal_basis({name}): angles beyond its rank are nan",
    )
  return basis
