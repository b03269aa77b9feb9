"""What does the header of a GGUF file say, and can it be true?

The gguf package's own reader makes a Python object for every element of every
array (seconds for a vocabulary) and does not compare lengths with the size of
the file, so a damaged length can make it run out of memory. This reader takes
arrays at once and believes no length that the file has no room for. Numbers
of the format come from the package.
"""

import dataclasses
import math
import os
import pathlib
import struct
from typing import Any

import gguf as gguf_package
import numpy as np

from headjax.checks import check, fail

_VERSIONS = (2, 3)
_MAX_DIMENSIONS = 4
_SCALARS = {
  gguf_package.GGUFValueType.UINT8: "<u1",
  gguf_package.GGUFValueType.INT8: "<i1",
  gguf_package.GGUFValueType.UINT16: "<u2",
  gguf_package.GGUFValueType.INT16: "<i2",
  gguf_package.GGUFValueType.UINT32: "<u4",
  gguf_package.GGUFValueType.INT32: "<i4",
  gguf_package.GGUFValueType.FLOAT32: "<f4",
  gguf_package.GGUFValueType.BOOL: "?",
  gguf_package.GGUFValueType.UINT64: "<u8",
  gguf_package.GGUFValueType.INT64: "<i8",
  gguf_package.GGUFValueType.FLOAT64: "<f8",
}
_TYPES = {kind.value: kind for kind in gguf_package.GGMLQuantizationType}


@dataclasses.dataclass(frozen=True)
class StoredTensor:
  """One tensor of a GGUF file.

  Attributes:
    kind: how the numbers are stored.
    shape: of the numbers, slowest axis first.
    rows: the stored bytes, one row for each index of the leading axes; a view
      of the file.
  """

  kind: gguf_package.GGMLQuantizationType
  shape: tuple[int, ...]
  rows: np.ndarray


@dataclasses.dataclass(frozen=True)
class Header:
  """The metadata of a GGUF file.

  Attributes:
    fields: key -> number, bool, str, list of str, or array.
    tensors: name -> where and what; nothing is read but the header.
  """

  fields: dict[str, Any]
  tensors: dict[str, StoredTensor]


def read_header(path: str | os.PathLike[str], kinds: frozenset) -> Header:
  """Reads the metadata of a little-endian GGUF file of version 2 or 3.

  Args:
    path: the file.
    kinds: the storage types that the caller can use.

  Raises:
    ValueError: if the file is not GGUF, damaged or truncated, or a tensor
      has another storage type.
  """
  path = pathlib.Path(path)
  try:
    empty = path.stat().st_size == 0
    # A plain view: slices of the memmap class itself are slow to make.
    data = np.asarray([] if empty else np.memmap(path, mode="r"), np.uint8)
  except OSError as error:
    fail(str(path), error, "a readable GGUF file", "check the path")
  cursor = _Cursor(data, str(path))
  check(
    cursor.take(4) == b"GGUF",
    str(path),
    "no GGUF mark at the start",
    "a GGUF file",
    "check the path",
  )
  version = cursor.number("<u4")
  check(
    version in _VERSIONS,
    f"{path}: version",
    f"{version} (read as little-endian)",
    "2 or 3",
    "convert the model again with a current converter",
  )
  n_tensors, n_fields = cursor.number("<u8"), cursor.number("<u8")
  fields: dict[str, Any] = {}
  for _ in range(n_fields):
    key = cursor.string()
    cursor.require(key not in fields, f"a second field {key!r}")
    fields[key] = cursor.value()
  entries = {}
  for _ in range(n_tensors):
    name = cursor.string()
    cursor.require(name not in entries, f"a second tensor {name!r}")
    entries[name] = cursor.entry(name, kinds)
  start = _aligned(cursor, fields)
  tensors = {
    name: _locate(cursor, name, start + offset, kind, shape)
    for name, (kind, shape, offset) in entries.items()
  }
  return Header(fields, tensors)


def _aligned(cursor, fields):
  """Where the tensor data begin."""
  alignment = fields.get("general.alignment", 32)
  cursor.require(
    type(alignment) is int and alignment.bit_count() == 1 and alignment > 0,
    f"general.alignment {alignment!r}",
  )
  return cursor.offset + -cursor.offset % alignment


def _locate(cursor, name, start, kind, shape):
  """Maps the bytes of a tensor, once its size is known to be in the file."""
  block, block_bytes = gguf_package.GGML_QUANT_SIZES[kind]
  cursor.require(
    shape[-1] % block == 0,
    f"tensor {name} with rows of {shape[-1]} in blocks of {block}",
  )
  width = shape[-1] // block * block_bytes
  cursor.offset = start
  n_bytes = math.prod(shape[:-1]) * width
  rows = cursor.view(n_bytes, f"tensor {name}")
  return StoredTensor(kind, shape, rows.reshape(*shape[:-1], width))


class _Cursor:
  """Reads values one after the other, never beyond the end of the file."""

  def __init__(self, data: np.ndarray, source: str):
    self.data, self.source, self.offset = data, source, 0

  def require(self, condition: bool, got: str) -> None:
    check(
      condition,
      self.source,
      got,
      "a consistent GGUF header",
      "use an undamaged file",
    )

  def view(self, n_bytes: int, what: str = "header") -> np.ndarray:
    end = self.offset + n_bytes
    self.require(
      end <= self.data.size,
      f"{what} up to byte {end} of {self.data.size}, a truncated file",
    )
    found = self.data[self.offset : end]
    self.offset = end
    return found

  def take(self, n_bytes: int) -> bytes:
    return self.view(n_bytes).tobytes()

  def number(self, dtype: str) -> Any:
    dtype = np.dtype(dtype)
    return np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()

  def string(self) -> str:
    raw = self.take(self.number("<u8"))
    try:
      return raw.decode("utf-8")
    except UnicodeDecodeError as error:
      fail(self.source, error, "text in UTF-8", "use an undamaged file")

  def value(self) -> Any:
    kind = self.number("<u4")
    if kind == gguf_package.GGUFValueType.ARRAY:
      return self._array()
    if kind == gguf_package.GGUFValueType.STRING:
      return self.string()
    self.require(kind in _SCALARS, f"a field of type {kind}")
    return self.number(_SCALARS[kind])

  def _array(self):
    kind, length = self.number("<u4"), self.number("<u8")
    if kind == gguf_package.GGUFValueType.STRING:
      return self._strings(length)
    self.require(kind in _SCALARS, f"an array of type {kind}")
    dtype = np.dtype(_SCALARS[kind])
    return np.frombuffer(self.take(length * dtype.itemsize), dtype)

  def _strings(self, length):
    """A list of strings, in one pass over the bytes: they may be many."""
    data, unpack = memoryview(self.data), struct.Struct("<Q").unpack_from
    position, size, found = self.offset, self.data.size, []
    try:
      for _ in range(length):
        start = position + 8
        position = start + unpack(data, position)[0]
        self.require(position <= size, f"text in {size} bytes, truncated")
        found.append(str(data[start:position], "utf-8"))
    except struct.error:
      self.require(False, f"an array in {size} bytes, truncated")
    except UnicodeDecodeError as error:
      fail(self.source, error, "text in UTF-8", "use an undamaged file")
    self.offset = position
    return found

  def entry(self, name: str, kinds: frozenset) -> tuple:
    """A tensor's storage type, shape (slowest axis first) and offset."""
    n_dims = self.number("<u4")
    self.require(
      1 <= n_dims <= _MAX_DIMENSIONS, f"tensor {name} with {n_dims} axes"
    )
    shape = tuple(self.number("<u8") for _ in range(n_dims))[::-1]
    self.require(0 not in shape, f"tensor {name} of shape {shape}")
    number = self.number("<u4")
    kind = _TYPES.get(number)
    check(
      kind in kinds,
      f"{self.source}: tensor {name}",
      f"type {kind.name if kind else number}",
      "one of " + ", ".join(sorted(k.name for k in kinds)),
      "convert the model to one of these types",
    )
    return kind, shape, self.number("<u8")
