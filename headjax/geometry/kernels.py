"""How much of one subspace lies in another, in one number?

The projection kernel PK = |Q_a^T Q_b|_F^2 is the sum of the squared cosines of
the principal angles: the dimension of the smaller space if it lies in the
other, 0 if they are orthogonal and, on average over random spaces,
dim a dim b / d_model.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from headjax.checks import check
from headjax.geometry.precision import matmul
from headjax.geometry.subspaces import Basis, Subspace, as_basis, check_pair
from headjax.outline import of_fields, table_of_fields


class Conservation(NamedTuple):
  """The two sides of the conservation identity.

  Attributes:
    total: `[...]` projection kernels with all write spaces, summed.
    dimension: `[...]` dimension of the read space.
  """

  total: jax.Array
  dimension: jax.Array

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def projection_kernel(a: Subspace, b: Subspace) -> jax.Array:
  """Overlap of two subspaces, PK = |Q_a^T Q_b|_F^2.

  Args:
    a: `[..., d_model, d_a]`, columns span the first subspace.
    b: `[..., d_model, d_b]`, columns span the second; leading axes as in `a`,
      or of length 1.

  Returns:
    `[...]` in [0, min(rank a, rank b)]. Dependent columns count once.

  Raises:
    ValueError: if the shapes do not match.

  Examples:
    >>> float(projection_kernel(jnp.eye(3)[:, :2], jnp.eye(3)[:, 1:]))
    1.0

  Source: paper A, section 3 (PK).
  """
  a, b = as_basis(a), as_basis(b)
  check_pair(a, b)
  return _kernel(a.columns, b.columns)


def projection_share(a: Subspace, b: Subspace) -> jax.Array:
  """Overlap as a share of the smaller subspace, rho = PK / min(rank).

  Args:
    a: as in `projection_kernel`.
    b: as in `projection_kernel`.

  Returns:
    `[...]` in [0, 1]; nan if a subspace is {0}.

  Raises:
    ValueError: if the shapes do not match.

  Source: paper A, section 3 (rho).
  """
  a, b = as_basis(a), as_basis(b)
  return projection_kernel(a, b) / jnp.minimum(a.rank, b.rank)


def pairwise_projection_kernel(a: Subspace, b: Subspace) -> jax.Array:
  """Projection kernels of all pairs from two lists of subspaces.

  One list entry of `a` is worked on at a time, so the memory beyond the bases
  is `[d_a, m, d_b]`. To pair all heads of a model, make `[layer, head]` one
  axis.

  Args:
    a: `[..., n, d_model, d_a]`.
    b: `[..., m, d_model, d_b]`, the same leading axes.

  Returns:
    `[..., n, m]`.

  Raises:
    ValueError: if the shapes do not match.

  Source: paper A, section 3 (PK).
  """
  a, b = as_basis(a).columns, as_basis(b).columns
  check(
    min(a.ndim, b.ndim) >= 3
    and a.shape[:-3] == b.shape[:-3]
    and a.shape[-2] == b.shape[-2],
    "b",
    f"shape {b.shape}",
    f"[..., m, d_model, d_b] to match a of shape {a.shape}",
    "give both the same leading axes and d_model",
  )
  return _pairwise(a, b)


def conservation(writes: Subspace, read: Subspace) -> Conservation:
  """What all heads of a layer share with one read space, and its dimension.

  Proposition 1: the two are equal if the write spaces are an orthogonal
  decomposition of the stream. A reader then cannot avoid a layer; it only
  chooses among its heads.

  Args:
    writes: `[..., head, d_model, d_head]`, the write spaces of a layer.
    read: `[..., d_model, k]`, leading axes those of `writes` or 1.

  Returns:
    Both sides of the identity, `[...]` each.

  Raises:
    ValueError: if the shapes do not match.

  Examples:
    >>> writes = jnp.eye(4).reshape(4, 2, 2).swapaxes(0, 1)
    >>> total, dimension = conservation(writes, jnp.ones((4, 1)))
    >>> round(float(total), 6), int(dimension)
    (1.0, 1)

  Source: paper A, section 3, proposition 1.
  """
  read = as_basis(read)
  each = Basis(read.columns[..., None, :, :], read.rank[..., None])
  return Conservation(projection_kernel(writes, each).sum(axis=-1), read.rank)


@jax.jit
def _kernel(a: jax.Array, b: jax.Array) -> jax.Array:
  """Sum of the squared products of orthonormal columns."""
  return (matmul(a.mT, b) ** 2).sum(axis=(-2, -1))


@jax.jit
def _pairwise(a: jax.Array, b: jax.Array) -> jax.Array:
  """All pairs of two stacks of columns, one product per entry of `a`."""
  wide = jnp.moveaxis(b, -3, -2)  # [..., d_model, m, d_b]
  shape = wide.shape
  wide = wide.reshape(*shape[:-2], -1)

  def one(columns):
    cosines = matmul(columns.mT, wide)
    cosines = cosines.reshape(*cosines.shape[:-1], *shape[-2:])
    return (cosines**2).sum(axis=(-3, -1))

  return jnp.moveaxis(jax.lax.map(one, jnp.moveaxis(a, -3, 0)), 0, -2)
