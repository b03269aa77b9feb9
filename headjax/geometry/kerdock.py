"""How does one layer get an orthogonal basis unrelated to the other layers'?

Member i of the Kerdock family of d_model = n r is the basis

  B_i = (diag((-1)^Q_i) H_n / sqrt(n)) kron C_i,

with H_n the Hadamard matrix of Sylvester's order, the signs of
`quadratic_forms` and an r x r orthogonal mixer C_i. Head h of a design owns the
columns h d_head .. (h + 1) d_head - 1. Every pair of blocks of two different
members has a projection kernel of almost d_head^2 / d_model, its mean over
random subspaces, although some pairs of members share directions.

A basis is kept as (d_model, member, n): a hashable value that enters a
program as n signs and an r x r matrix, not as a dense matrix.
"""

import dataclasses
import functools
import hashlib
import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import hadamard
from scipy.special import ndtri

from headjax.checks import check, fail
from headjax.geometry.quadratic_forms import FIELDS, kerdock_signs
from headjax.outline import of_fields, table_of_fields


@dataclasses.dataclass(frozen=True)
class KerdockBasis:
  """One orthogonal basis of the stream, in structured form.

  Attributes:
    d_model: n * r.
    member: which of the n / 2 members, from 0.
    n: width of the Hadamard factor: 16, 64 or 256; None takes the largest one
      that divides d_model.

  Raises:
    ValueError: if d_model is no multiple of n, or there is no such member.
  """

  d_model: int
  member: int
  n: int | None = None

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def __post_init__(self):
    """Settles n and refuses what does not exist."""
    n = _hadamard_width(self.d_model, self.n)
    object.__setattr__(self, "n", n)
    check(
      self.member in range(n // 2),
      "member",
      self.member,
      f"0 to {n // 2 - 1}, the n / 2 = {n // 2} members of d_model "
      f"{self.d_model} = {n} x {self.r}",
      "use fewer layers or a d_model with a wider Hadamard factor",
    )

  @property
  def r(self) -> int:
    """Width of the mixer, d_model / n."""
    return self.d_model // self.n

  @property
  def signs(self) -> np.ndarray:
    """`[n]` int8, the signs of the Hadamard factor's rows."""
    return kerdock_signs(self.n, self.member)

  @property
  def mixer(self) -> np.ndarray:
    """`[r, r]` float64, the orthogonal matrix C_i."""
    return _mixer(self.member, self.r)

  def dense(self) -> np.ndarray:
    """`[d_model, d_model]` float64, orthogonal."""
    factor = self.signs[:, None] * hadamard(self.n) / math.sqrt(self.n)
    return np.kron(factor, self.mixer)

  def apply(self, x: jax.Array) -> jax.Array:
    """B x for every vector of `x` `[..., d_model]`: out of the basis."""
    return rotate(x, self.signs, self.mixer)

  def apply_transpose(self, x: jax.Array) -> jax.Array:
    """B^T x for every vector of `x` `[..., d_model]`: into the basis."""
    return rotate_back(x, self.signs, self.mixer)


def kerdock_basis(
  d_model: int, member: int, n: int | None = None
) -> np.ndarray:
  """The dense matrix of one Kerdock basis.

  Args:
    d_model: n * r.
    member: which of the n / 2 members, from 0.
    n: width of the Hadamard factor; None takes the largest of 16, 64 and 256
      that divides d_model.

  Returns:
    `[d_model, d_model]` float64, orthogonal; the basis vectors are columns.

  Raises:
    ValueError: if d_model is no multiple of n, or there is no such member.

  Examples:
    >>> basis = kerdock_basis(192, member=5)
    >>> bool(np.allclose(basis.T @ basis, np.eye(192), atol=1e-12))
    True

  Source: paper A, appendix C.
  """
  return KerdockBasis(d_model, member, n).dense()


def rotate(x: jax.Array, signs: jax.Array, mixer: jax.Array) -> jax.Array:
  """B x from the parts of B, which may be traced (one set per scanned layer).

  Args:
    x: `[..., d_model]` with d_model = n r.
    signs: `[n]`.
    mixer: `[r, r]`.

  Returns:
    `[..., d_model]`, of the dtype of `x`.

  Raises:
    ValueError: if the width of `x` is not n r.
  """
  factor, inner = _factors(x, signs, mixer)
  rows = x.reshape(-1, len(factor), len(inner))
  rows = jnp.einsum("ab,tbc->tac", factor, rows)
  rows = rows.reshape(-1, len(inner)) @ inner.T
  return _flip(rows, signs, mixer).reshape(x.shape)


def rotate_back(x: jax.Array, signs: jax.Array, mixer: jax.Array) -> jax.Array:
  """B^T x from the parts of B.

  Args:
    x: `[..., d_model]`.
    signs: as in `rotate`, of shape `[n]`.
    mixer: as in `rotate`, of shape `[r, r]`.

  Returns:
    `[..., d_model]`.
  """
  factor, inner = _factors(x, signs, mixer)
  rows = _flip(x, signs, mixer).reshape(-1, len(inner)) @ inner
  rows = rows.reshape(-1, len(factor), len(inner))
  return jnp.einsum("ab,tbc->tac", factor, rows).reshape(x.shape)


def _hadamard_width(d_model: int, n: int | None) -> int:
  """The n of a d_model; fails if there is none."""
  fits = [width for width in FIELDS if d_model > 0 and d_model % width == 0]
  if n is None and fits:
    return max(fits)
  if n in fits:
    return n
  widths = ", ".join(map(str, FIELDS))
  if n is None or n in FIELDS:
    fail(
      "d_model",
      d_model,
      f"n r with n = {n or f'one of {widths}'}",
      "choose a multiple of n",
    )
  fail(
    "n",
    n,
    f"an even power of two with a Kerdock set here: {widths}",
    "choose one that divides d_model, or leave n out",
  )


@functools.cache
def _mixer(member: int, r: int) -> np.ndarray:
  """A Haar-random orthogonal matrix: QR of a Gaussian, signs fixed.

  Number k of the Gaussian, row by row, comes from the first eight bytes, big
  endian, of the SHA-256 of "kerdock-C/member/k": the same on every platform up
  to rounding.
  """
  digests = [
    hashlib.sha256(f"kerdock-C/{member}/{k}".encode()).digest()
    for k in range(r * r)
  ]
  integers = [int.from_bytes(digest[:8], "big") >> 11 for digest in digests]
  uniform = (np.array(integers) + 0.5) / 2.0**53
  q, triangle = np.linalg.qr(ndtri(uniform).reshape(r, r))
  mixer = q * np.copysign(1.0, np.diag(triangle))
  mixer.flags.writeable = False  # the cache hands out this very array
  return mixer


def _factors(
  x: jax.Array, signs: jax.Array, mixer: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """H_q and H_q kron C / q with q = sqrt(n), as H_n = H_q kron H_q.

  Two narrow products took a fifth of the time of one dense product (measured
  on a CPU at d_model = 768, on 512 rows).
  """
  check(
    x.shape[-1] == len(signs) * len(mixer),
    "x",
    f"vectors of width {x.shape[-1]}",
    f"the basis' {len(signs)} x {len(mixer)}",
    "pass the basis of this d_model",
  )
  root = math.isqrt(len(signs))
  factor = jnp.asarray(hadamard(root), x.dtype)
  return factor, jnp.kron(factor, jnp.asarray(mixer, x.dtype)) / root


def _flip(x: jax.Array, signs: jax.Array, mixer: jax.Array) -> jax.Array:
  """Applies the signs of the Hadamard factor's rows."""
  signs = jnp.asarray(signs, x.dtype)[None, :, None]
  return x.reshape(-1, signs.shape[1], len(mixer)) * signs
