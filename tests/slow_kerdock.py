"""Kerdock bases by the definition: Python integers, one entry at a time.

Also counts the directions that head blocks share.
"""

import math

import numpy as np

POLYNOMIALS = {4: 0b1011, 6: 0b100101, 8: 0b10000011}


def times(a: int, b: int, m: int) -> int:
  """Product of two polynomials over GF(2), then the remainder."""
  product = 0
  for k in range(m):
    if b >> k & 1:
      product ^= a << k
  for k in reversed(range(m - 1, 2 * m)):
    if product >> k & 1:
      product ^= POLYNOMIALS[m] << (k - m + 1)
  return product


def power(x: int, exponent: int, m: int) -> int:
  result = 1
  for _ in range(exponent):
    result = times(result, x, m)
  return result


def trace(y: int, m: int) -> int:
  total = 0
  for k in range(m - 1):
    total ^= power(y, 2**k, m)
  return total


def sign(v: int, member: int, m: int) -> int:
  """(-1)^Q of one vector of m bits."""
  x, e = v & (2 ** (m - 1) - 1), v >> (m - 1)
  y = times(member, x, m)
  form = e * trace(y, m)
  for i in range(1, (m - 2) // 2 + 1):
    form += trace(power(y, 2**i + 1, m), m)
  return (-1) ** form


def dense(n: int, member: int, mixer: np.ndarray) -> np.ndarray:
  """The basis of n * len(mixer) vectors, as columns."""
  r = len(mixer)
  basis = np.empty((n * r, n * r))
  for row in range(n):
    s = sign(row, member, n.bit_length() - 1)
    for column in range(n):
      entry = s * (-1) ** (row & column).bit_count() / math.sqrt(n)
      basis[row * r : row * r + r, column * r : column * r + r] = entry * mixer
  return basis


def head_blocks(a: np.ndarray, b: np.ndarray, d_head: int) -> np.ndarray:
  """Cosines between the columns of all blocks, [head, head, d_head, d_head]."""
  cosines = (a.T @ b).reshape(a.shape[1] // d_head, d_head, -1, d_head)
  return np.ascontiguousarray(cosines.swapaxes(1, 2))


def shared_directions(blocks: np.ndarray) -> np.ndarray:
  """How many directions each pair of blocks shares, [head, head].

  A principal cosine of 1 stays 1 in a high power of the Gram matrix, whose
  trace counts it; here cosines below 0.9 have vanished by then. Much faster
  than singular values.
  """
  powers = blocks.astype(np.float32)
  powers = powers.swapaxes(-1, -2) @ powers
  for _ in range(4):
    powers = powers @ powers
  count = (powers**2).sum(axis=(-1, -2))
  assert abs(count - count.round()).max() < 0.05, "a cosine is nearly 1"
  return count.round().astype(int)
