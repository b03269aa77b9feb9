"""Which device holds what? A mesh, and how it is used in training.

Batches, and with them the stream, are split over the mesh axes `data` and
`fsdp`; parameters (`headjax.models.placement`), and with them the optimiser's
state, over `fsdp` and, by heads and hidden units, over `tensor`. `jit` finds
the communication that follows: what a layer needs is gathered over `fsdp` just
before its use.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from headjax.checks import check
from headjax.models.config import ModelConfig
from headjax.models.placement import of_params

BATCH = PartitionSpec(("data", "fsdp"))


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


def gathered(mesh: Mesh, config: ModelConfig, params: Any) -> Any:
  """Parameters whole over `fsdp`, and their gradients split again.

  For the embeddings, which are used outside the layers: looking tokens up in
  an embedding that is cut along `d_model` would send the whole batch around.
  """

  def one(leaf, kept):
    axes = (None if axis == "fsdp" else axis for axis in kept.spec)
    return _use(leaf, NamedSharding(mesh, PartitionSpec(*axes)), kept)

  return jax.tree.map(one, params, of_params(mesh, config, params))


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
