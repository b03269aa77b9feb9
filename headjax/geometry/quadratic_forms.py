"""Which signs turn the Hadamard basis into a member of the Kerdock set?

For n = 2^m with m even, the Kerdock set has n / 2 quadratic forms on m bits
such that the sum of any two is bent: H diag((-1)^(Q_s + Q_t)) H / n has entries
+-1 / sqrt(n) only, so the bases of two members look random to one another.

With K = GF(2^(m - 1)), a vector v of m bits is read as x = its low m - 1 bits,
an element of K whose bit k is the coefficient of X^k, and e = its top bit.
Member s, itself an element of K, is

  Q_s(x, e) = Q(s x) + e Tr(s x)  mod 2,
  Q(x) = sum over i = 1 .. (m - 2) / 2 of Tr(x^(2^i + 1)).

Source: paper A, appendix C, which leaves the form, the field polynomials and
  the bit order open. These are the ones whose members 0 .. 23 at n = 256 share
  directions exactly where the paper says so.
"""

import functools

import numpy as np

# n -> the polynomial of K; bit k is the coefficient of X^k.
FIELDS = {16: 0b1011, 64: 0b100101, 256: 0b10000011}


@functools.cache
def kerdock_signs(n: int, member: int) -> np.ndarray:
  """The signs (-1)^Q_s of one member.

  Args:
    n: 16, 64 or 256.
    member: s, from 0 (the zero form) to n / 2 - 1.

  Returns:
    `[n]` read-only int8, 1 or -1, indexed by the vector v.

  Examples:
    >>> kerdock_signs(16, 1)[:8].tolist()
    [1, -1, -1, 1, -1, 1, -1, 1]
  """
  vectors = np.arange(n)
  x, e = vectors % (n // 2), vectors // (n // 2)
  scaled = _multiply(x, np.full(n, member), n)
  form, conjugate = e * _trace(scaled, n), scaled
  for _ in range(_degree(n) // 2):
    conjugate = _multiply(conjugate, conjugate, n)  # scaled^(2^i)
    form = form + _trace(_multiply(scaled, conjugate, n), n)
  signs = (1 - 2 * (form % 2)).astype(np.int8)
  signs.flags.writeable = False  # the cache hands out this very array
  return signs


def _degree(n: int) -> int:
  """Degree of K over GF(2); the number of its elements is n / 2."""
  return n.bit_length() - 2


def _multiply(a: np.ndarray, b: np.ndarray, n: int) -> np.ndarray:
  """Products in K."""
  product = np.zeros_like(a)
  for _ in range(_degree(n)):
    product = product ^ a * (b & 1)
    a, b = a << 1, b >> 1
    a = a ^ FIELDS[n] * (a >> _degree(n))
  return product


def _trace(y: np.ndarray, n: int) -> np.ndarray:
  """Tr(y) = y + y^2 + y^4 + ..., 0 or 1."""
  total = y
  for _ in range(_degree(n) - 1):
    y = _multiply(y, y, n)
    total = total ^ y
  return total
