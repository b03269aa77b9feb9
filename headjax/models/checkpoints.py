"""How does a saved training state come back from the disk unchanged?

`FOLDER/N/` is the state after N steps, as `headjax.models.checkpoint_writer`
leaves it: parts such as `params` and `optimizer` in Orbax's format, and `meta`,
which says what they hold: names, shapes, types and a checksum of every array.
What is read and is not what was saved is refused by name. A folder gets its
number when it is complete, so a half-written one is never read.
"""

import concurrent.futures
import dataclasses
import hashlib
import json
import textwrap
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
import tensorstore
from etils import epath
from jax.experimental import multihost_utils

from headjax.checks import check
from headjax.files import absolute, is_remote
from headjax.models.checksums import checksums, named_leaves

META = "meta"
_FORMAT = 1
_READERS = 8  # arrays read at once
# What TensorStore and JSON raise for damaged files.
_UNREADABLE = (AttributeError, LookupError, OSError, TypeError, ValueError)


class DamagedCheckpointError(ValueError):
  """The files of a checkpoint are not those that were written."""


@dataclasses.dataclass(frozen=True)
class Meta:
  """What a checkpoint says of itself.

  Attributes:
    step: training steps behind it.
    kept: False if it may go once there is a newer one.
    parts: part -> name of a leaf -> its shape, type and checksum.
  """

  step: int
  kept: bool
  parts: Mapping[str, Mapping[str, Any]]

  def digest(self, part: str) -> str:
    """The sha256, in hex, over names, shapes, types and checksums."""
    return _sha256(self.parts[part])

  def sealed(self) -> dict[str, Any]:
    """Plain values for a JSON file, and their own digest."""
    plain = dataclasses.asdict(self) | {"format": _FORMAT}
    return plain | {"sha256": _sha256(plain)}


def describe(tree: Any) -> dict[str, Any]:
  """What `Meta` says of a part: a tree of arrays."""
  sums = checksums(tree)
  return {
    name: _shape(leaf) | {"checksum": sums[name]}
    for name, leaf in named_leaves(tree).items()
  }


def steps(folder: epath.PathLike) -> list[int]:
  """The steps of the complete checkpoints of a folder, ascending."""
  paths = ocp.utils.checkpoint_steps_paths(folder)
  return sorted(int(path.name) for path in paths if path.name.isdecimal())


def restore(
  folder: epath.PathLike, step: int, parts: Mapping[str, Any]
) -> tuple[dict[str, Any], Meta]:
  """Reads parts of a checkpoint.

  Args:
    folder: of the checkpoints.
    step: which one.
    parts: name -> tree of `jax.ShapeDtypeStruct` with shardings: what is
      expected, and where it goes. Other parts are not read.

  Returns:
    The parts, with every array bit by bit what was saved, and the meta.

  Raises:
    DamagedCheckpointError: it is not what was saved.
    ValueError: it has other arrays than expected.
  """
  path = absolute(folder) / str(step)
  meta = read_meta(folder, step)
  restored = {}
  for part, tree in parts.items():
    _check_fit(path, part, tree, meta)
    found = _read(path, part, tree)
    _check_sums(path, part, found, meta)
    leaves, structure = list(found.values()), jax.tree.structure(tree)
    restored[part] = jax.tree.unflatten(structure, leaves)
  return restored, meta


def read_meta(folder: epath.PathLike, step: int) -> Meta:
  """What a checkpoint says of itself.

  Raises:
    DamagedCheckpointError: it is not what was written.
  """
  path = epath.Path(folder) / str(step)
  try:
    plain = json.loads((path / META / "metadata").read_text())
    seal = plain.pop("sha256")
  except _UNREADABLE as error:
    raise _damaged(path, f"unreadable {META} ({brief(error)})") from error
  if seal != _sha256(plain) or plain["step"] != step:
    raise _damaged(path, f"a {META} that is not its own")
  check(
    plain.pop("format") == _FORMAT,
    f"checkpoint {path}",
    "another format",
    f"format {_FORMAT}",
    "use the headjax that wrote it",
  )
  return Meta(**plain)


def brief(error: Exception) -> str:
  """The beginning of a message, without the pages that TensorStore adds."""
  return textwrap.shorten(str(error).split("[tensorstore_spec")[0], 200)


def _read(path: epath.Path, part: str, tree: Any) -> dict[str, jax.Array]:
  """The arrays of a part as they are on the disk, by name.

  Orbax can read them too, but when one array fails, its others go on to
  complain on standard error.
  """
  leaves = named_leaves(tree)
  problem = ""
  with concurrent.futures.ThreadPoolExecutor(_READERS) as pool:
    reads = {
      name: pool.submit(_read_array, path / part, name, leaf)
      for name, leaf in leaves.items()
    }
    for name, read in reads.items():
      if isinstance(read.exception(), _UNREADABLE):
        problem = f"unreadable {part} {name} ({brief(read.exception())})"
  if _anywhere(bool(problem), leaves):
    raise _damaged(path, problem or "files that another process cannot read")
  return {name: read.result() for name, read in reads.items()}


def _anywhere(failed: bool, leaves: Mapping[str, Any]) -> bool:
  """Whether it is so in any process that holds a part of the arrays."""
  if all(leaf.sharding.is_fully_addressable for leaf in leaves.values()):
    return failed
  return bool(multihost_utils.process_allgather(np.array(failed)).any())


def _read_array(folder, name, leaf):
  local = {"driver": "file", "path": f"{folder}/"}
  spec = {
    "driver": "zarr",
    "fill_missing_data_reads": False,
    "kvstore": {
      "driver": "ocdbt",
      "base": f"{folder}/" if is_remote(folder) else local,
      "path": f"{name}/",
    },
  }
  stored = tensorstore.open(spec, dtype=leaf.dtype, shape=leaf.shape).result()
  return jax.make_array_from_callback(
    leaf.shape, leaf.sharding, lambda index: stored[index].read().result()
  )


def _check_fit(path, part, tree, meta):
  expected = {name: _shape(leaf) for name, leaf in named_leaves(tree).items()}
  saved = meta.parts.get(part, {})
  for name in sorted(expected.keys() | saved.keys()):
    got = {k: v for k, v in saved.get(name, {}).items() if k != "checksum"}
    check(
      got == expected.get(name),
      f"checkpoint {path}: {part} {name}",
      got or "no such array",
      expected.get(name, "no such array"),
      "use the config that it was trained with",
    )


def _shape(leaf: Any) -> dict[str, Any]:
  return {"shape": list(leaf.shape), "dtype": str(leaf.dtype)}


def _check_sums(path, part, leaves, meta):
  for name, found in checksums(leaves).items():
    if found != meta.parts[part][name]["checksum"]:
      raise _damaged(path, f"{part} {name} with another checksum")


def _damaged(path, got):
  message = (
    f"checkpoint {path}: got {got}; expected what was saved; delete the folder"
    " and use an earlier one"
  )
  return DamagedCheckpointError(" ".join(message.split()))


def _sha256(plain: Any) -> str:
  text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
  return hashlib.sha256(text.encode()).hexdigest()
