"""What is the answer without a group of heads? Many groups, one batch each.

All heads of a group are replaced at once, at every position: by zero, or by
what they give on average at tokens of the same kind.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from headjax import results
from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks
from headjax.interventions.metrics import LogitDifference
from headjax.interventions.prepared import labels
from headjax.interventions.questions import Batch, batch_of, check_pairs
from headjax.interventions.record import record
from headjax.interventions.sweep import PRECISION, general_sweep
from headjax.models.compiling import fast_jit
from headjax.models.decoder import Decoder
from headjax.models.load import LoadedModel
from headjax.models.sites import Edit, Edits


def lesion_groups(
  model: LoadedModel,
  pairs: PromptPairs,
  groups,
  *,
  means: np.ndarray | None = None,
  kinds: np.ndarray | None = None,
  examples: int = 32,
  rows: int = 16,
  progress: Callable[[int], Any] | None = None,
) -> xr.Dataset:
  """The logit difference without each group of heads.

  Args:
    model: from `load_model`.
    pairs: prompts; the references are not run.
    groups: `[group, layer, head]` bool; an empty group changes nothing.
    means: `[kind, layer, head, d_head]` of `mean_outputs`, to put in the place
      of the heads' outputs; None puts zero.
    kinds: `[example, pos]` which mean a token gets; needed with `means`.
    examples: at once.
    rows: groups at once.
    progress: called with the number of groups that are done on a chunk.

  Returns:
    A dataset with `lesioned[example, group]` and `base[example]`, in logits
    (nats).

  Raises:
    ValueError: groups, means or kinds that do not fit the model and the pairs,
      or prompts that it cannot run.

  Source: paper C, group lesions.
  """
  check_pairs(model.config, pairs)
  groups = _checked_groups(model, groups)
  check(
    (means is None) == (kinds is None),
    "kinds",
    kinds if kinds is None else "kinds without means",
    "means and kinds, or neither",
    "pass both",
  )
  if means is None:
    means = np.zeros((1, *_shape(model)))
    kinds = np.zeros(pairs.clean.shape, np.int8)
  kinds = _checked_kinds(pairs, kinds, len(means))
  began = time.perf_counter()
  examples = min(examples, len(pairs))
  dtype = jax.tree.leaves(model.params)[0].dtype
  table = jnp.asarray(np.moveaxis(np.asarray(means), 0, 1), dtype)
  gates = jnp.asarray(groups[:, :, None, None, :, None], dtype)
  lesioned, base = np.zeros((len(pairs), len(groups))), np.zeros(len(pairs))
  for index, place in chunks.slices(len(pairs), examples):
    n, batch = place.stop - place.start, batch_of(pairs, index)
    value = table[:, kinds[index]]
    sweep = general_sweep(
      model.model,
      model.params,
      batch.clean,
      Edits(z=(Edit(gates, value),)),
      LogitDifference(jnp.asarray(batch.answer), jnp.asarray(batch.foil)),
      answer=batch.answer_pos,
      key_valid=batch.key_valid,
      rows=rows,
      progress=progress,
    )
    base[place] = sweep.base[:n]
    lesioned[place] = (sweep.base - sweep.effect)[:, :n].T
  provenance = results.provenance(
    model=model,
    pairs=pairs,
    wall_s=time.perf_counter() - began,
    chunk=examples * rows,
    method="group lesions",
    site="z",
    position="all",
    ablation="zero" if len(means) == 1 else "mean",
  )
  about = {"long_name": "logit difference", "units": results.LOGITS}
  return xr.Dataset(
    {
      "lesioned": (("example", "group_of_heads"), lesioned, about),
      "base": ("example", base, about),
    },
    labels(pairs),
    attrs=provenance,
  )


def mean_outputs(
  model: LoadedModel,
  pairs: PromptPairs,
  kinds: np.ndarray,
  n_kinds: int,
  *,
  examples: int = 64,
) -> np.ndarray:
  """What each head gives on average at tokens of each kind.

  Args:
    model: from `load_model`.
    pairs: prompts; the references are not run.
    kinds: `[example, pos]` from 0 to `n_kinds - 1`; padding does not count.
    n_kinds: how many there are.
    examples: at once.

  Returns:
    `[kind, layer, head, d_head]` float64; 0 for a kind without tokens.

  Raises:
    ValueError: kinds of another shape or range, or prompts that the model
      cannot run.
  """
  check_pairs(model.config, pairs)
  kinds = _checked_kinds(pairs, kinds, n_kinds)
  total = np.zeros((n_kinds, *_shape(model)))
  count = np.zeros(n_kinds)
  with jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(pairs), min(examples, len(pairs))):
      batch = batch_of(pairs, index)
      batch.key_valid[place.stop - place.start :] = False
      chosen = kinds[index][..., None] == np.arange(n_kinds)
      chosen &= batch.key_valid[..., None]
      count += chosen.sum(axis=(0, 1))
      weight = chosen.astype(np.float32)
      found = _summed(model.model, model.params, batch, weight)
      total += np.asarray(found, np.float64)
  return total / np.maximum(count, 1)[:, None, None, None]


@functools.partial(fast_jit, static_argnames=("model",))
def _summed(
  model: Decoder, params: Any, batch: Batch, weight: jax.Array
) -> jax.Array:
  """`[kind, layer, head, d_head]` sums of the heads' outputs."""
  z = record(model, params, batch.clean, key_valid=batch.key_valid).z
  return jnp.einsum("lbphe,bpk->klhe", z, weight.astype(z.dtype))


def _shape(model: LoadedModel) -> tuple[int, int, int]:
  config = model.config
  return config.n_layers, config.n_heads, config.d_head


def _checked_groups(model: LoadedModel, groups) -> np.ndarray:
  groups, heads = np.asarray(groups), _shape(model)[:2]
  check(
    groups.dtype == bool and groups.ndim == 3 and groups.shape[1:] == heads,
    "groups",
    f"{groups.dtype} of shape {groups.shape}",
    f"bool [group, {heads[0]}, {heads[1]}]",
    "mark the heads of each group",
  )
  check(len(groups) >= 1, "groups", "none", "a group", "pass at least one")
  return groups


def _checked_kinds(pairs: PromptPairs, kinds, n_kinds: int) -> np.ndarray:
  """Kinds with something allowed on the padding, which nothing reads."""
  kinds = np.asarray(kinds)
  check(
    kinds.shape == pairs.clean.shape,
    "kinds",
    f"shape {kinds.shape}",
    f"{pairs.clean.shape}, one for each token",
    "pass the kinds of these prompts",
  )
  inside = np.arange(kinds.shape[1]) < pairs.lengths[:, None]
  seen = kinds[inside]
  check(
    bool(((seen >= 0) & (seen < n_kinds)).all()),
    "kinds",
    f"{seen.min()} to {seen.max()}",
    f"0 to {n_kinds - 1}",
    "pass a mean for every kind",
  )
  return np.where(inside, kinds, 0)
