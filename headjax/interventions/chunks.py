"""How much fits at once? Chunks of examples and heads within a budget.

The sizes are an upper estimate of the bytes that a sweep holds beside the
parameters. All chunks have one shape, so there is one compile; the last one
is padded with repeats that are dropped again.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from headjax.checks import check
from headjax.models.config import ModelConfig
from headjax.models.cost import block_size

GIB = 2**30
MARGIN = 1.1  # for what the estimate of a row leaves out
BUSY = 3072  # rows from which on a matrix product is at its full rate


@dataclasses.dataclass(frozen=True)
class Plan:
  """Sizes of a sweep's chunks.

  Attributes:
    examples: per chunk.
    heads: source heads per call.
    n_bytes: the estimate for one chunk on one device.
  """

  examples: int
  heads: int
  n_bytes: int


def _per_example(config: ModelConfig, n_pos: int, width: int) -> int:
  """Numbers kept per example: two runs, the cache and the cut window."""
  heads = config.n_heads * config.d_head
  whole = n_pos * (2 * config.d_model + 7 * heads)
  cut = width * (2 * config.d_model + heads)
  return config.n_layers * (whole + cut)


def _per_row(config: ModelConfig, n_pos: int, width: int) -> int:
  """Numbers alive at once per (example, source head), in one later layer."""
  heads = config.n_heads * config.d_head
  attention = 4 * heads + 3 * config.n_heads * (n_pos + width)
  mlp = (3 if config.gated else 2) * config.d_mlp + 3 * config.n_experts
  return width * (4 * config.d_model + max(attention, mlp))


def _bytes(
  config, n_pos, width, itemsize, budget_bytes, row_extra, example_extra
) -> tuple[int, int, int]:
  """Of one layer's parameters, an example and a row, if these fit at least."""
  # A traced layer index copies that layer's parameters.
  layer = itemsize * block_size(config)
  fixed = itemsize * (_per_example(config, n_pos, width) + example_extra)
  row = int(MARGIN * itemsize * (_per_row(config, n_pos, width) + row_extra))
  check(
    layer + fixed + row <= budget_bytes,
    "budget_bytes",
    budget_bytes,
    f"at least {layer + fixed + row} for prompts of {n_pos} tokens",
    "raise the budget or shorten the prompts",
  )
  return layer, fixed, row


def _evenly(n_examples: int, most: int, n_devices: int) -> int:
  """Examples in each of the fewest chunks, the same on every device."""
  n_chunks = -(-n_examples // most)
  examples = -(-n_examples // n_chunks)
  return -(-examples // n_devices) * n_devices


def plan(
  config: ModelConfig,
  *,
  n_examples: int,
  n_pos: int,
  width: int,
  itemsize: int,
  budget_bytes: int,
  n_devices: int = 1,
  row_extra: int = 0,
  example_extra: int = 0,
) -> Plan:
  """The largest chunk of examples, then of heads, that fits the budget.

  Args:
    config: of the model.
    n_examples: in the whole sweep.
    n_pos: positions in the padded batch.
    width: positions in the window.
    itemsize: bytes per number.
    budget_bytes: per device, beside the parameters.
    n_devices: that the examples are spread over.
    row_extra: numbers that the metric needs per (example, head), for
      instance the vocabulary.
    example_extra: numbers that are kept per example besides.

  Returns:
    A plan whose chunks differ by at most the padding.

  Raises:
    ValueError: not even one example and one head fit.
  """
  layer, fixed, row = _bytes(
    config, n_pos, width, itemsize, budget_bytes, row_extra, example_extra
  )
  heads = min(config.n_heads, (budget_bytes - layer - fixed) // row)
  fits = (budget_bytes - layer) // (fixed + heads * row)
  most = max(1, int(fits)) * n_devices
  examples = _evenly(n_examples, most, n_devices)
  n_bytes = layer + examples // n_devices * (fixed + heads * row)
  return Plan(examples, int(heads), n_bytes)


def plan_rows(
  config: ModelConfig,
  *,
  n_examples: int,
  n_pos: int,
  width: int,
  itemsize: int,
  budget_bytes: int,
  n_devices: int = 1,
  row_extra: int = 0,
  example_extra: int = 0,
) -> Plan:
  """The chunks of a sweep that has far more sites than it can do at once.

  As many examples as there are, and of sites, which the plan calls heads,
  enough to keep a product busy. Arguments as in `plan`.

  Args:
    config: of the model.
    n_examples: in the whole sweep.
    n_pos: positions in the padded batch.
    width: positions in the window.
    itemsize: bytes per number.
    budget_bytes: per device, beside the parameters.
    n_devices: that the examples are spread over.
    row_extra: numbers that are needed besides per (example, site).
    example_extra: numbers that are kept besides per example.

  Raises:
    ValueError: not even one example and one site fit.
  """
  layer, fixed, row = _bytes(
    config, n_pos, width, itemsize, budget_bytes, row_extra, example_extra
  )
  room = budget_bytes - layer
  rows = min(-(-BUSY // width), (room - fixed) // row)
  most = max(1, min(rows, (room - rows * row) // fixed)) * n_devices
  examples = _evenly(n_examples, most, n_devices)
  own = examples // n_devices
  sites = max(1, rows // own)
  return Plan(examples, sites, layer + own * (fixed + sites * row))


def slices(n: int, size: int) -> Iterator[tuple[np.ndarray, slice]]:
  """Index chunks of one size: `(indices, where they belong)`.

  The last chunk repeats its last index; what comes out of the repeats lies
  beyond the slice's length and is to be cut off.
  """
  for start in range(0, n, size):
    stop = min(start + size, n)
    yield np.minimum(np.arange(start, start + size), n - 1), slice(start, stop)


def spread(tree: Any, n_devices: int) -> Any:
  """Places the leading (example) axis of every leaf over the devices."""
  if n_devices == 1:
    return jax.device_put(tree)
  mesh = Mesh(np.array(jax.devices()[:n_devices]), ("data",))
  return jax.device_put(tree, NamedSharding(mesh, PartitionSpec("data")))


def replicate(tree: Any, n_devices: int) -> Any:
  """Places a tree whole on every device."""
  if n_devices == 1:
    return jax.device_put(tree)
  mesh = Mesh(np.array(jax.devices()[:n_devices]), ("data",))
  return jax.device_put(tree, NamedSharding(mesh, PartitionSpec()))
