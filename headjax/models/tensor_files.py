"""Which tensors do the safetensors files of a folder hold, and what are they?

Every claim of an index or a header is checked before a tensor is read. The
safetensors package itself compares the sizes and offsets in a header with the
length of the file; nothing here unpickles.
"""

import collections
import contextlib
import dataclasses
import json
import pathlib
from collections.abc import Iterable, Iterator, Mapping

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open

from headjax.checks import check, fail

# The name also has to be known to NumPy, which is what ml_dtypes is for.
DTYPES = {
  "BF16": ml_dtypes.bfloat16,
  "F16": np.float16,
  "F32": np.float32,
  "F64": np.float64,
}
SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")


@dataclasses.dataclass(frozen=True)
class StoredTensor:
  """Where a tensor is, and what the header says of it."""

  file: pathlib.Path
  dtype: str
  shape: tuple[int, ...]


def read_json(path: pathlib.Path) -> dict:
  """Reads a file that holds one JSON object.

  Raises:
    ValueError: if the file is missing, damaged or holds something else.
  """
  check(
    path.is_file(),
    str(path.parent),
    f"no {path.name}",
    "a Hugging Face model folder",
    "check the path",
  )
  try:
    content = json.loads(path.read_text(encoding="utf-8"))
  except (ValueError, RecursionError) as error:
    fail(str(path), error, "a JSON file", "use an undamaged file")
  kind = type(content).__name__
  check(
    kind == "dict", str(path), kind, "a JSON object", "use an undamaged file"
  )
  return content


def catalogue(folder: pathlib.Path) -> dict[str, StoredTensor]:
  """Lists the tensors of a folder, from one file or from indexed shards.

  Args:
    folder: holds `model.safetensors`, or shards with
      `model.safetensors.index.json`.

  Returns:
    name -> where and what; nothing is read but headers.

  Raises:
    ValueError: if a file is missing or damaged, or the index is wrong.
  """
  if (folder / SINGLE).is_file():
    return _headers(folder / SINGLE)
  if (folder / INDEX).is_file():
    return _sharded(folder)
  pickled = [name for name in _PICKLED if (folder / name).is_file()]
  if pickled:
    fail(
      str(folder),
      f"only {pickled[0]}",
      f"{SINGLE}, because a pickle can run code when it is read",
      "convert it with transformers: AutoModelForCausalLM"
      ".from_pretrained(folder).save_pretrained(new_folder)",
    )
  fail(
    str(folder),
    "no weights",
    f"{SINGLE} or {INDEX}",
    "check the path and that the download is complete",
  )


def read(
  found: Mapping[str, StoredTensor], names: Iterable[str]
) -> Iterator[tuple[str, np.ndarray]]:
  """Yields the named tensors in their stored type, one in memory at a time.

  Args:
    found: what `catalogue` returned.
    names: which tensors.

  Raises:
    ValueError: if a type is not supported or a file has become unreadable.
  """
  by_file = collections.defaultdict(list)
  for name in names:
    check_type(name, found[name])
    by_file[found[name].file].append(name)
  for file, members in by_file.items():
    with _opened(file) as tensors:
      for name in members:
        yield name, tensors.get_tensor(name)


def check_type(name: str, tensor: StoredTensor) -> None:
  """Fails unless the type of a tensor is one that can be read."""
  check(
    tensor.dtype in DTYPES,
    f"{tensor.file}: tensor {name}",
    f"type {tensor.dtype}",
    "one of " + ", ".join(DTYPES),
    "convert the weights to one of these types",
  )


def _sharded(folder):
  index = folder / INDEX
  shard_of = read_json(index).get("weight_map")
  check(
    isinstance(shard_of, dict)
    and all(isinstance(shard, str) for shard in shard_of.values()),
    f"{index}: weight_map",
    type(shard_of).__name__,
    "an object of tensor names and file names",
    "use an undamaged index",
  )
  found = {}
  for shard in sorted(set(shard_of.values())):
    file = folder / shard
    check(
      pathlib.PurePath(shard).name == shard and file.is_file(),
      f"{index}: shard",
      f"no file {shard} in the folder",
      "every shard beside its index",
      "complete the download",
    )
    held = _headers(file)
    listed = {name for name, where in shard_of.items() if where == shard}
    for name in sorted(listed ^ held.keys()):
      fail(
        f"{index}: tensor {name}",
        f"{'absent from' if name in listed else 'unlisted but in'} {shard}",
        "an index that agrees with its shards",
        "use the index that belongs to the shards",
      )
    found |= held
  return found


def _headers(file):
  with _opened(file) as tensors:
    found = {}
    for name in tensors.keys():
      view = tensors.get_slice(name)
      shape = tuple(view.get_shape())
      found[name] = StoredTensor(file, view.get_dtype(), shape)
    return found


@contextlib.contextmanager
def _opened(file):
  """Opens a file; what the package refuses becomes one line naming it."""
  try:
    with safe_open(str(file), framework="np") as tensors:
      yield tensors
  except (SafetensorError, OSError) as error:
    fail(str(file), error, "a safetensors file", "use an undamaged file")
