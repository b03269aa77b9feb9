"""Does the checksum that is computed on devices equal one loop in Python?"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from headjax.models.checksums import checksums, named_leaves

WORDS = {1: "<u1", 2: "<u2", 4: "<u4", 8: "<u4"}


def slow(array):
  """The definition, one word at a time, in exact integers."""
  raw = np.ascontiguousarray(array)
  words = np.frombuffer(raw.tobytes(), WORDS[raw.itemsize])
  total = sum(int(word) * (2 * i + 1) for i, word in enumerate(words))
  return total % 2**32


def random_array(dtype, shape, seed=0):
  rng = np.random.default_rng(seed)
  if dtype == "bool":
    return rng.integers(0, 2, shape).astype(bool)
  if np.issubdtype(np.dtype(dtype), np.integer):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype)
  return rng.normal(size=shape).astype(jnp.dtype(dtype))


@pytest.mark.parametrize(
  "dtype",
  ["float32", "bfloat16", "float16", "int32", "uint32", "int8", "bool"],
)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 4, 5), (2, 0, 3)])
def test_it_is_the_sum_of_weighted_words(dtype, shape):
  array = random_array(dtype, shape)
  assert checksums({"x": jnp.asarray(array)}) == {"x": slow(array)}


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_a_number_of_8_bytes_is_two_words(dtype, x64):
  array = random_array(dtype, (3, 5))
  assert checksums({"x": jnp.asarray(array)}) == {"x": slow(array)}


@pytest.mark.parametrize(
  "spec", [(), ("a",), (None, "b"), ("a", "b"), (("a", "b"),), (None, "a")]
)
def test_it_does_not_depend_on_the_sharding(spec):
  mesh = jax.make_mesh((4, 2), ("a", "b"), (AxisType.Auto,) * 2)
  array = random_array("float32", (8, 16))
  placed = jax.device_put(array, NamedSharding(mesh, PartitionSpec(*spec)))
  assert checksums([placed]) == {"0": slow(array)}


def test_every_flipped_bit_changes_it():
  array = random_array("float32", (5,))
  before = checksums([jnp.asarray(array)])
  for place in range(array.size):
    for bit in range(32):
      words = array.view(np.uint32).copy()
      words[place] ^= np.uint32(1 << bit)
      assert checksums([jnp.asarray(words.view(np.float32))]) != before


def test_elements_that_change_places_change_it():
  array = random_array("bfloat16", (4, 4))
  turned = checksums([jnp.asarray(array.T)])
  assert checksums([jnp.asarray(array)]) != turned
  swapped = array.copy()
  swapped[[0, 1]] = swapped[[1, 0]]
  assert checksums([jnp.asarray(array)]) != checksums([jnp.asarray(swapped)])


def test_equal_numbers_with_other_bits_differ():
  zeros = jnp.zeros(3)
  assert checksums([zeros]) != checksums([-zeros])


def test_leaves_have_dotted_names():
  tree = {"blocks": {"W": 1, "b": [2, 3]}, "c": (4,)}
  assert named_leaves(tree) == {
    "blocks.W": 1,
    "blocks.b.0": 2,
    "blocks.b.1": 3,
    "c.0": 4,
  }
