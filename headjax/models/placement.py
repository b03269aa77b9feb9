"""Which device holds which part of a model? One rule for every parameter.

Parameters are split over the mesh axis `fsdp` and, by heads and hidden units,
over `tensor`; over other axes they are repeated.
"""

from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from headjax.checks import check
from headjax.models.config import ModelConfig
from headjax.models.weights import PATHS

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
_FREE = (None, "fsdp", "tensor", None)
_BLOCKED = (None, "tensor", "fsdp", None)  # of a block reader
_EXPERT_WEIGHTS = ("W_in", "W_gate", "W_out")  # an axis more


def check_mesh(mesh: Mesh) -> None:
  """Fails unless a mesh has the axes that the rule names."""
  check(
    {"fsdp", "tensor"} <= set(mesh.axis_names),
    "mesh",
    f"axes {', '.join(mesh.axis_names)}",
    "among them fsdp and tensor",
    "give an axis that is not used the size 1",
  )


def of_params(mesh: Mesh, config: ModelConfig, params: Any) -> Any:
  """The sharding of every leaf of a parameter tree, or of its shapes.

  Trees around it, such as the optimiser's state, work too: a leaf is known by
  the last parts of its path, and what is no weight is on every device.
  """
  names = {path[-2:]: name for name, path in PATHS.items()}

  def one(path, leaf):
    keys = tuple(getattr(key, "key", None) for key in path)
    axes = _axes(config, names.get(keys[-2:]))
    return NamedSharding(mesh, _spec(mesh, axes, leaf.shape))

  return jax.tree_util.tree_map_with_path(one, params)


def _axes(config: ModelConfig, name: str | None) -> tuple[str | None, ...]:
  """The mesh axis of each of a weight's axes."""
  if name in ("W_Q", "W_K", "W_V", "W_G"):
    return _BLOCKED if name[-1] in config.read.blocks else _FREE
  if name in ("b_Q", "b_K", "b_V"):
    return (None, "tensor", None)
  axes = _AXES.get(name, ())
  if config.n_experts and name in _EXPERT_WEIGHTS:
    # Every device has a part of every expert.
    return (None, *axes)
  return axes


def _spec(mesh, axes, shape):
  if len(axes) > len(shape):  # a count or another scalar of the optimiser
    return PartitionSpec()
  return PartitionSpec(
    *(
      axis if axis and n % mesh.shape[axis] == 0 else None
      for axis, n in zip(axes, shape, strict=False)
    )
  )
