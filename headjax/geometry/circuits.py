"""What do a head's matrices do together? Its OV and QK circuits, factored.

Stored weights act on row vectors: a head writes x W_V W_O for the stream x that
it attends to, and scores x_query W_Q W_K^T x_key^T before the division by
sqrt(d_head). Biases and norms stay outside, and so do rotary positions: then
the QK circuit holds at distance 0 only. Both circuits are d_model x d_model
matrices of rank d_head at most and are never formed.
"""

import dataclasses

import jax
import jax.numpy as jnp

from headjax.checks import check
from headjax.geometry.precision import matmul
from headjax.outline import of_fields, table_of_fields


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Factored:
  """The matrix `left @ right`, kept as its two factors.

  Attributes:
    left: `[..., rows, inner]`.
    right: `[..., inner, columns]`.
  """

  left: jax.Array
  right: jax.Array

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  # NumPy arrays leave `array @ factored` to `__rmatmul__`.
  __array_ufunc__ = None

  @property
  def T(self) -> "Factored":  # noqa: N802
    """The transposed matrix."""
    return Factored(self.right.mT, self.left.mT)

  def product(self) -> jax.Array:
    """`[..., rows, columns]`, the dense matrix."""
    return matmul(self.left, self.right)

  def norm(self) -> jax.Array:
    """`[...]` Frobenius norm."""
    gram = matmul(self.left.mT, self.left)
    return jnp.sqrt(_inner(gram, matmul(self.right, self.right.mT)))

  def trace(self) -> jax.Array:
    """`[...]`; fails unless the matrix is square."""
    rows, columns = self.left.shape[-2], self.right.shape[-1]
    check(
      rows == columns,
      "trace",
      f"a {rows} x {columns} matrix",
      "a square one",
      "take the trace of a product that maps a space to itself",
    )
    return _inner(self.left.mT, self.right)

  def eigenvalues(self) -> jax.Array:
    """`[..., inner]` complex, unordered; all others are 0.

    Those of the small product `right @ left`. Runs where the backend has a
    nonsymmetric eigensolver; the CPU does, a TPU does not.
    """
    return jnp.linalg.eigvals(matmul(self.right, self.left))

  def __matmul__(self, other):
    """Times a dense matrix, or a factored one: then factored again."""
    if isinstance(other, Factored):
      return Factored(self.left, self.right @ other)
    return matmul(self.left, matmul(self.right, other))

  def __rmatmul__(self, other):
    """A dense matrix times this one."""
    return matmul(matmul(other, self.left), self.right)


def ov_circuit(W_V: jax.Array, W_O: jax.Array) -> Factored:
  """What a head writes for what it reads, x @ OV.

  Args:
    W_V: `[..., d_model, d_head]`.
    W_O: `[..., d_head, d_model]`.

  Returns:
    `[..., d_model, d_model]`, factored.

  Raises:
    ValueError: if the head widths differ.

  Examples:
    >>> copying = ov_circuit(jnp.eye(3)[:, :2], jnp.eye(3)[:2])
    >>> float(copying.trace()), copying.product().shape
    (2.0, (3, 3))
  """
  _check_head_widths(W_V.shape[-1], W_O.shape[-2])
  return Factored(W_V, W_O)


def qk_circuit(W_Q: jax.Array, W_K: jax.Array) -> Factored:
  """Which source a query scores, x_query @ QK @ x_key^T.

  Args:
    W_Q: `[..., d_model, d_head]`.
    W_K: `[..., d_model, d_head]`, per query head.

  Returns:
    `[..., d_model, d_model]`, factored; not divided by sqrt(d_head).

  Raises:
    ValueError: if the head widths differ.
  """
  _check_head_widths(W_Q.shape[-1], W_K.shape[-1])
  return Factored(W_Q, W_K.mT)


def scaled_idempotence(circuit: Factored) -> jax.Array:
  """How nearly a map repeats itself: P(T) = <T^2, T>^2 / (|T^2|^2 |T|^2).

  It is 1 for a multiple of a projection, of either sign, and 0 if T^2 has no
  part along T. The scale of T does not matter, and T and T^T give the same.

  Args:
    circuit: `[..., d_model, d_model]`, in practice an OV circuit.

  Returns:
    `[...]` in [0, 1]; nan where T^2 = 0.

  Examples:
    >>> minus_copying = ov_circuit(-jnp.eye(3)[:, :2], jnp.eye(3)[:2])
    >>> float(scaled_idempotence(minus_copying))
    1.0

  Source: paper A, section 5.4. With T = L R, M = R L, G_L = L^T L and
    G_R = R R^T the terms are tr(M^T G_L G_R), tr(M^T G_L M G_R) and
    tr(G_L G_R): all d_head x d_head.
  """
  left, right = circuit.left, circuit.right
  small = matmul(right, left)
  gram_left = matmul(left.mT, left)
  gram_right = matmul(right, right.mT)
  once = matmul(gram_left, gram_right)
  twice = matmul(gram_left, matmul(small, gram_right))
  along = _inner(small, once)
  return along**2 / (_inner(small, twice) * _inner(gram_left, gram_right))


def _check_head_widths(first: int, second: int) -> None:
  """Two weights of one head must have the same d_head."""
  check(
    first == second,
    "d_head",
    f"{first} and {second}",
    "one width",
    "pass both weights of the same head",
  )


def _inner(a: jax.Array, b: jax.Array) -> jax.Array:
  """tr(a^T b)."""
  return (a * b).sum(axis=(-2, -1))
