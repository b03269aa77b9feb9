"""Where does each head look? Attention patterns, whole or summed up by kind.

A head's score for a kind (`headjax.interventions.kinds`) is its attention to
the keys of that kind, averaged over the queries that have any.
"""

import dataclasses
import functools
import hashlib
import json
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from headjax import results
from headjax.checks import check
from headjax.interventions import chunks
from headjax.interventions.kinds import KINDS, targets
from headjax.interventions.sweep import PRECISION
from headjax.models.decoder import Decoder
from headjax.models.layerwise import scan_layers
from headjax.models.load import LoadedModel
from headjax.models.prompts import check_prompts, padded_context


def head_scores(
  model: LoadedModel,
  tokens: np.ndarray,
  *,
  lengths: Sequence[int] | np.ndarray | None = None,
  name: str = "tokens",
  budget_bytes: int = 2 * chunks.GIB,
) -> xr.Dataset:
  """Scores every head by what it attends to; no pattern is kept.

  Args:
    model: from `load_model`.
    tokens: `[example, pos]` ids, padded on the right.
    lengths: `[example]`, in tokens; None means the full width.
    name: of the tokens, for the provenance.
    budget_bytes: memory per device, beside the parameters.

  Returns:
    A dataset with `score[kind, example, layer, head]`, in shares of attention,
    and `queries[kind, example]`, over how many it is the mean. Where there
    are none the score is NaN.

  Raises:
    ValueError: ids that the model cannot run, or a budget that not one
      example fits.
  """
  began = time.perf_counter()
  tokens, lengths = check_prompts(model.config, tokens, lengths)
  n_maps = 3 * model.config.n_heads + 2 * len(KINDS)
  size = _chunk(model, tokens, n_maps, budget_bytes)
  sums, queries = _by_chunks(_sums, model, tokens, lengths, size)
  with np.errstate(invalid="ignore"):
    score = sums / queries[..., None, None]
  dims = ("kind", "example", "layer", "head")
  score, queries = np.moveaxis(score, 1, 0), queries.T
  about = {"long_name": "mean attention to the keys of a kind", "units": "1"}
  coords = {d: np.arange(n) for d, n in zip(dims, score.shape, strict=True)}
  return xr.Dataset(
    {"score": (dims, score, about), "queries": (dims[:2], queries)},
    coords | {"kind": list(KINDS)},
    attrs=results.provenance(
      model=model,
      pairs=_Prompts(name, tokens, lengths),
      wall_s=time.perf_counter() - began,
      chunk=size,
    ),
  )


def patterns(
  model: LoadedModel,
  tokens: np.ndarray,
  *,
  lengths: Sequence[int] | np.ndarray | None = None,
  budget_bytes: int = 2 * chunks.GIB,
) -> xr.DataArray:
  """The attention of every head, on the host.

  Args:
    model: from `load_model`.
    tokens: `[example, pos]` ids, padded on the right.
    lengths: `[example]`, in tokens; None means the full width.
    budget_bytes: memory for the result.

  Returns:
    `[layer, head, example, query, key]` shares of attention, 0 for queries
    that are padding. Along `[example, key]` there are the `id` of each token
    and, if the model has a tokenizer, its text as `token`.

  Raises:
    ValueError: ids that the model cannot run, or patterns beyond the budget.
  """
  tokens, lengths = check_prompts(model.config, tokens, lengths)
  size = _chunk(
    model, tokens, model.config.n_layers * model.config.n_heads, budget_bytes,
    kept=len(tokens),
  )  # fmt: skip
  [found] = _by_chunks(_maps, model, tokens, lengths, size)
  labels = {"id": (("example", "key"), tokens)}
  if model.tokenizer is not None:
    text = [[model.tokenizer.decode([i]) for i in row] for row in tokens]
    labels["token"] = (("example", "key"), np.array(text))
  return xr.DataArray(
    np.moveaxis(found, 0, 2),
    dims=("layer", "head", "example", "query", "key"),
    coords=labels,
    name="pattern",
  )


@functools.partial(jax.jit, static_argnames=("model",))
def _sums(model: Decoder, params: Any, tokens, lengths):
  """Sums `[batch, kind, layer, head]` over queries, and their number."""
  weights = targets(tokens, lengths)

  def see(_, acts):
    weight = weights.astype(acts.pattern.dtype)
    return jnp.einsum("bhqk,nbqk->bnh", acts.pattern, weight)

  sums = scan_layers(
    model, params, tokens, padded_context(tokens, lengths), see
  )[1]
  return jnp.moveaxis(sums, 0, 2), (weights > 0).any(-1).sum(-1).T


@functools.partial(jax.jit, static_argnames=("model",))
def _maps(model: Decoder, params: Any, tokens, lengths):
  """`[batch, layer, head, query, key]`."""
  context = padded_context(tokens, lengths)
  asks = context.key_valid[:, None, :, None]

  def see(_, acts):
    return jnp.where(asks, acts.pattern, 0)

  maps = scan_layers(model, params, tokens, context, see)[1]
  return (jnp.moveaxis(maps, 0, 1),)


def _chunk(model, tokens, n_maps, budget_bytes, kept=1) -> int:
  """How many examples to run at once, on all devices together.

  Args:
    model: that is run.
    tokens: `[example, pos]`.
    n_maps: arrays `[query, key]` that an example needs.
    budget_bytes: for them.
    kept: examples that the budget has to hold at the least.
  """
  n_examples, n_pos = tokens.shape
  itemsize = jax.tree.leaves(model.params)[0].dtype.itemsize
  one = itemsize * n_maps * n_pos**2
  check(
    kept * one <= budget_bytes,
    "budget_bytes",
    budget_bytes,
    f"at least {kept * one} for {kept} prompts of {n_pos} tokens",
    "take shorter prompts, or fewer, or ask for scores instead of patterns",
  )
  n_devices = min(jax.local_device_count(), n_examples)
  most = -(-n_examples // n_devices)
  return min(budget_bytes // one // kept, most) * n_devices


def _by_chunks(call, model, tokens, lengths, size) -> list[np.ndarray]:
  """What `call` gives for all examples, its arrays' first axis."""
  n_devices = min(jax.local_device_count(), len(tokens))
  params = chunks.replicate(model.params, n_devices)
  parts = []
  with jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(tokens), size):
      inputs = chunks.spread((tokens[index], lengths[index]), n_devices)
      found = call(model.model, params, *inputs)
      n = place.stop - place.start
      parts.append([np.asarray(array)[:n] for array in found])
  return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


@dataclasses.dataclass(frozen=True)
class _Prompts:
  """What the provenance says of the tokens."""

  name: str
  tokens: np.ndarray
  lengths: np.ndarray
  split: str = ""

  @property
  def digest(self) -> str:
    """The sha256, in hex, of the ids without padding."""
    rows = [
      row[:n].tolist() for row, n in zip(self.tokens, self.lengths, strict=True)
    ]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
