"""Which tensor of a checkpoint is which weight, in either direction?

A layout says, for every tensor that a file must hold, its shape there and
what becomes of it (`headjax.models.layout_tables` has the public ones). Files
are compared with it before anything is read, so that a checkpoint of the wrong
size costs no memory.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from headjax.checks import check
from headjax.models.config import ModelConfig
from headjax.models.weights import shapes

Convert = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Source:
  """What one tensor of a checkpoint holds.

  Attributes:
    shape: as stored in the checkpoint.
    targets: weight -> how the tensor becomes that weight (at `index`). For
      writing, the result has to be a view: conversions only rearrange.
    index: into the weight's first axes: its layer, or layer and expert.
  """

  shape: tuple[int, ...]
  targets: Mapping[str, Convert]
  index: tuple[int, ...] = ()


Layout = dict[str, Source]


def check_layout(
  layout: Layout, found: Mapping[str, tuple[int, ...]], source: str
) -> None:
  """Fails unless a checkpoint holds exactly the tensors of a layout.

  Args:
    layout: the tensors that belong to the config.
    found: name -> shape of the tensors that are there.
    source: the folder or file, for the message.

  Raises:
    ValueError: a tensor is missing, unknown or of the wrong shape; the
      message has its name, what was got and what was expected.
  """
  for name in sorted(layout.keys() | found.keys()):
    got = f"shape {found[name]}" if name in found else "no tensor"
    expected = f"shape {layout[name].shape}" if name in layout else "none"
    check(
      got == expected,
      f"{source}: tensor {name}",
      got,
      expected + " for this config",
      "check that the config belongs to the weights",
    )


def assemble(
  config: ModelConfig,
  layout: Layout,
  tensors: Iterable[tuple[str, np.ndarray]],
  dtype: np.dtype,
) -> dict[str, np.ndarray]:
  """Fills the stacked weights from the tensors of a checkpoint, one by one.

  Args:
    config: the architecture.
    layout: the layout that the tensors were checked against.
    tensors: pairs of name and array, read as they are asked for.
    dtype: of the result. A value too large for it becomes infinite.

  Returns:
    weight -> array in the stored shape of `weights.shapes`.
  """
  weights = {
    name: np.empty(shape, dtype) for name, shape in shapes(config).items()
  }
  for name, array in tensors:
    source = layout[name]
    for weight, convert in source.targets.items():
      with np.errstate(over="ignore", invalid="ignore"):
        weights[weight][source.index] = convert(array)
  return weights


def disassemble(
  source: Source, weights: Mapping[str, np.ndarray]
) -> np.ndarray:
  """One tensor of a checkpoint, from the stacked weights.

  Args:
    source: what the tensor holds.
    weights: weight -> array in its stored shape; all of one type.
  """
  [dtype] = {weights[weight].dtype for weight in source.targets}
  array = np.empty(source.shape, dtype)
  for weight, convert in source.targets.items():
    view = convert(array)
    assert np.shares_memory(view, array), f"{weight} is not a view"
    view[...] = weights[weight][source.index]
  return array


def check_layers(n_layers: int, n_tensors: int, source: str) -> None:
  """Fails if a config claims more layers than a file has tensors.

  A layout has entries for every layer, and for every expert in it, so this
  bounds its size by the file's.
  """
  check(
    n_layers <= n_tensors,
    f"{source}: number of layers, or of all their experts",
    n_layers,
    f"at most {n_tensors}, the number of tensors",
    "check that the config belongs to the weights",
  )


def check_heads(
  config: ModelConfig, found: Iterable[tuple[int, ...]], source: str
) -> None:
  """Fails if the queries of one layer alone were more than a file holds.

  Rotary angles are as many as a head is wide, and exist before shapes can be
  compared; this bounds them by the file's size.

  Args:
    config: the architecture.
    found: shapes of the tensors that are there.
    source: the folder or file, for the message.
  """
  held = sum(map(math.prod, found))
  check(
    config.d_model * config.n_heads * config.d_head <= held,
    f"{source}: heads",
    f"{config.n_heads} of {config.d_head} coordinates, reading"
    f" {config.d_model}",
    f"at most {held} weights, as many as are there",
    "check that the config belongs to the weights",
  )
