"""Which device holds what? A mesh, and one rule for every parameter.

Batches, and with them the stream, are split over the mesh axes `data` and
`fsdp`; parameters, and with them the optimiser's state, over `fsdp` and, by
heads and hidden units, over `tensor`. `jit` finds the communication that
follows: what a layer needs is gathered over `fsdp` just before its use.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from headjax.checks import check
from headjax.models.weights import PATHS

BATCH = PartitionSpec(("data", "fsdp"))
# Weight -> mesh axis of each of its own axes, layers first inside a block. An
# axis that the mesh does not divide stays whole.
_AXES = {
  "W_E": ("tensor", "fsdp"),
  "W_U": ("fsdp", "tensor"),
  "W_pos": (None, "fsdp"),
  "W_O": (None, "tensor", None, "fsdp"),
  "W_in": (None, "fsdp", "tensor"),
  "W_gate": (None, "fsdp", "tensor"),
  "W_out": (None, "tensor", "fsdp"),
  "b_in": (None, "tensor"),
  "adapter_in": (None, "fsdp", None),
  "adapter_out": (None, None, "fsdp"),
}
_MAPS = {
  True: (None, "tensor", "fsdp", None),  # of a block reader
  False: (None, "fsdp", "tensor", None),
}


@dataclasses.dataclass(frozen=True)
class MeshShape:
  """Devices along each axis; -1 for `data` takes those that are left."""

  data: int = -1
  fsdp: int = 1
  tensor: int = 1


def make_mesh(shape: MeshShape, devices: Any = None) -> Mesh:
  """The mesh over all devices of all processes.

  Raises:
    ValueError: the product is not the number of devices.
  """
  devices = jax.devices() if devices is None else devices
  sizes = dataclasses.asdict(shape)
  rest = sizes["fsdp"] * sizes["tensor"]
  if sizes["data"] == -1 and rest > 0:
    sizes["data"] = max(1, len(devices) // rest)
  check(
    min(sizes.values()) > 0 and math.prod(sizes.values()) == len(devices),
    "mesh",
    " x ".join(f"{name} {size}" for name, size in sizes.items()),
    f"a product of {len(devices)}, the number of devices",
    "change config.mesh, or leave mesh.data at -1",
  )
  axis_types = (AxisType.Auto,) * len(sizes)
  return jax.make_mesh(
    tuple(sizes.values()), tuple(sizes), axis_types, devices=devices
  )


def batch_shards(mesh: Mesh) -> int:
  """Into how many parts a batch is split."""
  return mesh.shape["data"] * mesh.shape["fsdp"]


def check_batch(mesh: Mesh, batch_size: int, accumulate: int) -> None:
  """Refuses a batch that the mesh does not divide."""
  shards = batch_shards(mesh)
  check(
    batch_size % (shards * accumulate) == 0,
    "train.batch_size",
    batch_size,
    f"a multiple of data x fsdp x train.accumulate = {shards} x {accumulate}",
    "change the batch or the mesh",
  )


def of_params(mesh: Mesh, params: Any) -> Any:
  """The sharding of every leaf of a parameter tree, or of its shapes.

  Trees around it, such as the optimiser's state, work too: a leaf is known by
  the last parts of its path, and what is no weight is on every device.
  """
  names = {path[-2:]: name for name, path in PATHS.items()}

  def one(path, leaf):
    keys = tuple(getattr(key, "key", None) for key in path)
    name = names.get(keys[-2:])
    blocked = keys[-1] in ("W_Q", "W_K", "W_V", "W_G") and (
      leaf.ndim == 4 and leaf.shape[2] == leaf.shape[3]
    )
    return NamedSharding(mesh, _spec(mesh, name, leaf.shape, blocked))

  return jax.tree_util.tree_map_with_path(one, params)


def _spec(mesh, name, shape, blocked):
  if name in ("W_Q", "W_K", "W_V", "W_G"):
    axes = _MAPS[blocked]
  elif name in ("b_Q", "b_K", "b_V"):
    axes = (None, "tensor", None)
  else:
    axes = _AXES.get(name, ())
  if len(axes) > len(shape):  # a count or another scalar of the optimiser
    return PartitionSpec()
  return PartitionSpec(
    *(
      axis if axis and n % mesh.shape[axis] == 0 else None
      for axis, n in zip(axes, shape, strict=False)
    )
  )


def gathered(mesh: Mesh, params: Any) -> Any:
  """Parameters whole over `fsdp`, and their gradients split again.

  For the embeddings, which are used outside the layers: looking tokens up in
  an embedding that is cut along `d_model` would send the whole batch around.
  """

  def one(leaf, kept):
    axes = (None if axis == "fsdp" else axis for axis in kept.spec)
    return _use(leaf, NamedSharding(mesh, PartitionSpec(*axes)), kept)

  return jax.tree.map(one, params, of_params(mesh, params))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _use(leaf, used, kept):
  return jax.lax.with_sharding_constraint(leaf, used)


def _use_forward(leaf, used, kept):
  return _use(leaf, used, kept), None


def _use_backward(used, kept, _, gradient):
  # First each device's own sum over its rows, then the sum over devices.
  gradient = jax.lax.with_sharding_constraint(gradient, used)
  return (jax.lax.with_sharding_constraint(gradient, kept),)


_use.defvjp(_use_forward, _use_backward)


def local_rows(mesh: Mesh, batch_size: int) -> np.ndarray:
  """The rows of a global batch that this process's devices hold, in order."""
  sharding = NamedSharding(mesh, BATCH)
  slices = sharding.addressable_devices_indices_map((batch_size,)).values()
  rows = {i for (part,) in slices for i in range(*part.indices(batch_size))}
  return np.array(sorted(rows), np.int64)
