"""What does every head attend to, and give, where one token is asked?

One forward a chunk of rows gives both, at the query alone; nothing else is
kept, so that any number of rows can be gone through.
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm.auto import tqdm

from headjax.checks import check
from headjax.data.probes import Probe
from headjax.interventions import chunks
from headjax.interventions.sweep import PRECISION
from headjax.models.compiling import fast_jit
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder
from headjax.models.layerwise import scan_layers
from headjax.models.load import LoadedModel
from headjax.models.prompts import check_prompts, padded_context


class QueryRows(NamedTuple):
  """Some rows of a probe, at their queries, float64 on the host.

  Attributes:
    place: where they belong among all rows.
    z: `[example, layer, head, d_head]`, the heads' outputs.
    pattern: `[example, layer, head, pos]`, their attention.
  """

  place: slice
  z: np.ndarray
  pattern: np.ndarray


def query_rows(
  model: LoadedModel,
  probe: Probe,
  *,
  budget_bytes: int = 2 * chunks.GIB,
  progress: bool = False,
) -> Iterator[QueryRows]:
  """Goes through the rows of a probe once.

  Args:
    model: from `load_model`.
    probe: rows with a query each.
    budget_bytes: memory per device, beside the parameters.
    progress: whether to show a progress bar.

  Raises:
    ValueError: rows that the model cannot run, or a budget that not one fits.
  """
  tokens, lengths = check_prompts(model.config, probe.tokens, probe.lengths)
  n_devices = min(jax.local_device_count(), len(probe))
  size = examples_at_once(
    model, tokens.shape, _numbers(model.config, tokens.shape[1]), budget_bytes
  )
  params = chunks.replicate(model.params, n_devices)
  bar = tqdm(
    total=len(probe), unit="row", desc=probe.name, disable=not progress
  )
  with bar:
    for index, place in chunks.slices(len(probe), size):
      inputs = chunks.spread((tokens[index], lengths[index]), n_devices)
      with jax.default_matmul_precision(PRECISION):
        found = _at_query(model.model, params, *inputs)
      n = place.stop - place.start
      z, pattern = (np.asarray(x, np.float64)[:n] for x in found)
      bar.update(n)
      yield QueryRows(place, z, pattern)


def examples_at_once(
  model: LoadedModel, shape: tuple[int, int], numbers: int, budget_bytes: int
) -> int:
  """How many rows fit, on all devices together, in chunks of like size.

  Args:
    model: that runs them.
    shape: rows and positions.
    numbers: that a row needs in memory.
    budget_bytes: per device.
  """
  one = numbers * jax.tree.leaves(model.params)[0].dtype.itemsize
  check(
    one <= budget_bytes,
    "budget_bytes",
    budget_bytes,
    f"at least {one} for a row of {shape[1]} tokens",
    "raise the budget or shorten the rows",
  )
  n_devices = min(jax.local_device_count(), shape[0])
  most = int(budget_bytes // one) * n_devices
  n_chunks = -(-shape[0] // most)
  size = -(-shape[0] // n_chunks)
  return -(-size // n_devices) * n_devices


def _numbers(config: ModelConfig, n_pos: int) -> int:
  """Numbers that a row needs: one layer's attention and MLP, what is kept."""
  heads = config.n_heads * config.d_head
  layer = 3 * config.n_heads * n_pos + 4 * heads + 4 * config.d_model
  layer += (3 if config.gated else 2) * config.d_mlp + 3 * config.n_experts
  kept = config.n_layers * config.n_heads * (n_pos + config.d_head)
  return n_pos * layer + kept


@functools.partial(fast_jit, static_argnames=("model",))
def _at_query(model: Decoder, params: Any, tokens, lengths):
  """`[batch, layer, head, d_head]` and `[batch, layer, head, pos]`."""
  row = jnp.arange(tokens.shape[0])
  query = lengths - 1

  def see(_, acts):
    return acts.z[row, query], acts.pattern[row, :, query]

  context = padded_context(tokens, lengths)
  z, pattern = scan_layers(model, params, tokens, context, see)[1]
  return jnp.moveaxis(z, 0, 1), jnp.moveaxis(pattern, 0, 1)
