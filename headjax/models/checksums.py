"""Is an array still what it was? A checksum, computed where the array is.

Bits of an array are read as integers, and the sum of `bits[i] * (2 i + 1)`
modulo 2^32, with i the place in row-major order, is its checksum. Integer sums
have no rounding, so it is the same on any device and for any sharding, and no
bit of the array travels. Odd weights see every change of one element, and
different ones see elements that changed places.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_WORDS = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32, 8: jnp.uint32}


def named_leaves(tree: Any) -> dict[str, Any]:
  """The leaves of a tree under their dotted paths, such as "embed.W_E"."""
  leaves, _ = jax.tree.flatten_with_path(tree)
  return {
    jax.tree_util.keystr(path, simple=True, separator="."): leaf
    for path, leaf in leaves
  }


def checksums(tree: Any) -> dict[str, int]:
  """The checksum of every leaf, by its dotted path.

  Args:
    tree: arrays of booleans, integers or floats, on any devices.
  """
  leaves = named_leaves(tree)
  sums = jax.device_get(_sums(list(leaves.values())))
  return dict(zip(leaves, map(int, sums), strict=True))


@jax.jit
def _sums(arrays: list[jax.Array]) -> list[jax.Array]:
  return [_sum(array) for array in arrays]


def _sum(array: jax.Array) -> jax.Array:
  if array.dtype == bool:
    array = array.astype(jnp.uint8)
  # A number of 8 bytes becomes two words on an axis of their own.
  words = jax.lax.bitcast_convert_type(array, _WORDS[array.dtype.itemsize])
  words = words.astype(jnp.uint32)
  place = jnp.zeros(words.shape, jnp.uint32)
  stride = 1
  for axis in reversed(range(words.ndim)):
    line = jax.lax.broadcasted_iota(jnp.uint32, words.shape, axis)
    place += line * np.uint32(stride % 2**32)
    stride *= words.shape[axis]
  weights = 2 * place + 1
  return (words * weights).sum(dtype=jnp.uint32)
