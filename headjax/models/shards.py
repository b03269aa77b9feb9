"""How does a model get onto many devices? Each reads the parts that it holds.

No weight is ever whole in the host's memory: for each part that a device of
this process holds, the stretches of the stored tensors that make it up are
copied, converted and placed. What needs the most memory on its way comes
first, when little is placed yet. Parts that several devices hold are read once.
"""

import collections
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from headjax.models import placement, weights
from headjax.models.config import ModelConfig
from headjax.models.huggingface import Opened
from headjax.models.layouts import Convert
from headjax.models.tensor_files import DTYPES, check_type
from headjax.models.tensor_views import Views

Extent = tuple[tuple[int, int], ...]  # start and stop along each axis


def read_sharded(
  opened: Opened, mesh: Mesh, dtype: np.dtype, source: str
) -> dict[str, Any]:
  """The parameters of a folder, placed as training places them.

  Args:
    opened: from `huggingface.open_folder`.
    mesh: of devices, with the axes `fsdp` and `tensor`.
    dtype: of the parameters. A value too large for it becomes infinite, and
      is refused.
    source: where the weights come from, for the error messages.

  Returns:
    The nested parameter dict for `Decoder(config)`.

  Raises:
    ValueError: an unknown type, or weights that are not finite.
  """
  for name in opened.stored.values():
    check_type(name, opened.found[name])
  views, pieces = Views(opened.found), _pieces(opened)
  shapes, where = weights.shapes(opened.config), shardings(opened.config, mesh)

  def transient(name):  # a stored tensor that is looked at, and a part
    largest = max(math.prod(piece.shape) for piece in pieces[name])
    return largest + math.prod(where[name].shard_shape(shapes[name]))

  arrays = {}
  for name in sorted(pieces, key=transient, reverse=True):
    shape, sharding, parts = shapes[name], where[name], []
    for extent, devices in _parts(sharding, shape).items():
      part = _read(views, pieces[name], extent, dtype, f"{source}: {name}")
      parts += [jax.device_put(part, device) for device in devices]
      del part
    arrays[name] = jax.make_array_from_single_device_arrays(
      shape, sharding, parts
    )
  return weights.nested(arrays)


def shardings(config: ModelConfig, mesh: Mesh) -> dict[str, NamedSharding]:
  """Weight -> its sharding."""
  shapes = weights.shapes(config)
  leaves = {
    name: jax.ShapeDtypeStruct(shape, np.float32)
    for name, shape in shapes.items()
  }
  placed = placement.of_params(mesh, config, weights.nested(leaves))
  return {name: weights.get(placed, name) for name in shapes}


def planned_bytes(opened: Opened, mesh: Mesh) -> dict[jax.Device, int]:
  """How many bytes of the files each device of this process asks for."""
  pieces, shapes = _pieces(opened), weights.shapes(opened.config)
  total = collections.Counter()
  for name, sharding in shardings(opened.config, mesh).items():
    for extent, devices in _parts(sharding, shapes[name]).items():
      size = sum(
        math.prod(_shape(inner)) * piece.itemsize
        for piece, inner in _within(pieces[name], extent)
      )
      total.update(dict.fromkeys(devices, size))
  return dict(total)


@dataclasses.dataclass(frozen=True)
class _Piece:
  """What a stored tensor gives to a weight.

  Attributes:
    tensor: its name in the files.
    lead: where in the weight's first axes it belongs.
    convert: to the axes that are left; only rearranges, so that the result is
      a view, too.
    shape: of the tensor.
    itemsize: bytes a number.
  """

  tensor: str
  lead: tuple[int, ...]
  convert: Convert
  shape: tuple[int, ...]
  itemsize: int


def _pieces(opened: Opened) -> dict[str, list[_Piece]]:
  """Weight -> the stored tensors that make it up."""
  pieces = collections.defaultdict(list)
  for name, source in opened.layout.items():
    tensor = opened.stored[name]
    itemsize = np.dtype(DTYPES[opened.found[tensor].dtype]).itemsize
    for weight, convert in source.targets.items():
      piece = _Piece(tensor, source.index, convert, source.shape, itemsize)
      pieces[weight].append(piece)
  return pieces


def _parts(
  sharding: NamedSharding, shape: tuple[int, ...]
) -> dict[Extent, list[jax.Device]]:
  """Each part of an array that this process holds, and where."""
  parts = collections.defaultdict(list)
  places = sharding.addressable_devices_indices_map(shape)
  for device, index in places.items():
    pairs = zip(index, shape, strict=True)
    parts[tuple(s.indices(n)[:2] for s, n in pairs)].append(device)
  return parts


def _shape(extent: Extent) -> list[int]:
  return [stop - start for start, stop in extent]


def _within(
  pieces: list[_Piece], extent: Extent
) -> Iterator[tuple[_Piece, Extent]]:
  """The pieces that a part takes something of, and what of their axes."""
  for piece in pieces:
    n = len(piece.lead)
    ends = zip(extent[:n], piece.lead, strict=True)
    if all(start <= i < stop for (start, stop), i in ends):
      yield piece, extent[n:]


def _read(views, pieces, extent, dtype, field) -> np.ndarray:
  """One part of a weight."""
  part = np.empty(_shape(extent), dtype)
  for piece, inner in _within(pieces, extent):
    starts = (start for start, _ in extent)
    place = tuple(i - n for i, n in zip(piece.lead, starts, strict=False))
    found = piece.convert(views[piece.tensor])
    with np.errstate(over="ignore", invalid="ignore"):
      part[place] = found[tuple(slice(*pair) for pair in inner)]
    del found
    weights.check_finite(part[place], field)
  return part
