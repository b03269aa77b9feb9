"""What is the answer if the last token carries something else? All else stays.

There the outputs of groups of heads are replaced by what they are on average
in a task, or directions are added to the stream.
"""

import time
from collections.abc import Mapping, Sequence
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
from headjax.interventions.questions import batch_of, check_pairs
from headjax.interventions.sweep import general_sweep
from headjax.models.config import ModelConfig
from headjax.models.load import LoadedModel
from headjax.models.sites import Edit, Edits, Shift


def transplant(
  model: LoadedModel,
  pairs: PromptPairs,
  groups,
  means,
  *,
  examples: int = 32,
  rows: int = 8,
) -> xr.Dataset:
  """The answers with each group's outputs at the last token replaced.

  Args:
    model: from `load_model`.
    pairs: prompts; the references are not run.
    groups: `[group, layer, head]` bool; an empty group changes nothing.
    means: `[layer, head, d_head]` of `answer_outputs`.
    examples: at once.
    rows: groups at once.

  Returns:
    A dataset with `edited[example, group_of_heads]` and `base[example]`, logit
    differences in logits (nats).

  Raises:
    ValueError: groups or means of another model, or prompts that it cannot
      run.

  Source: paper C, transplant of task means.
  """
  config = model.config
  heads = config.n_layers, config.n_heads
  groups, means = np.asarray(groups), np.asarray(means)
  check(
    groups.dtype == bool and groups.shape[1:] == heads and len(groups) > 0,
    "groups",
    f"{groups.dtype} of shape {groups.shape}",
    f"bool [group, {heads[0]}, {heads[1]}], at least one",
    "mark the heads of each group",
  )
  check(
    means.shape == (*heads, config.d_head),
    "means",
    f"shape {means.shape}",
    f"{(*heads, config.d_head)}",
    "measure them on this model",
  )
  value = means[:, None, None]

  def edits(last):
    gate = groups[:, :, None, None, :, None] * last[:, :, None, None]
    return Edits(z=(Edit(*_as_params(model, gate, value)),))

  began = time.perf_counter()
  found = _answers(model, pairs, edits, len(groups), examples, rows)
  return _labelled(
    model, pairs, *found, ("group_of_heads",), {}, began,
    method="transplant", site="z", position="last", chunk=examples * rows,
  )  # fmt: skip


def steer(
  model: LoadedModel,
  pairs: PromptPairs,
  vectors: Mapping[str, Any],
  *,
  layer: int | None = None,
  strengths: Sequence[float] = (1.0,),
  examples: int = 32,
  rows: int = 8,
) -> xr.Dataset:
  """The answers with directions added to the stream at the last token.

  Args:
    model: from `load_model`.
    pairs: prompts; the references are not run.
    vectors: name -> `[d_model]`.
    layer: after which they are added; None: a third of all layers.
    strengths: what the vectors are multiplied with, one after the other.
    examples: at once.
    rows: strengths at once.

  Returns:
    A dataset with `edited[example, vector, strength]` and `base[example]`,
    logit differences in logits (nats).

  Raises:
    ValueError: vectors or a layer of another model, or prompts that it cannot
      run.

  Source: Todd et al. (2024) add at a third of the layers; paper C, steering.
  """
  check(bool(vectors), "vectors", "none", "at least one", "pass some")
  layer = steered_layer(model.config) if layer is None else layer
  found = []
  began = time.perf_counter()
  for name, vector in vectors.items():

    def edits(last, name=name, vector=vector):
      return steering(
        model, last, vector, layer, strengths, f"vectors[{name!r}]"
      )

    found.append(_answers(model, pairs, edits, len(strengths), examples, rows))
  coords = {"vector": list(vectors), "strength": list(strengths)}
  edited = np.stack([edited for edited, _ in found], axis=1)
  return _labelled(
    model, pairs, edited, found[0][1], ("vector", "strength"), coords, began,
    method="steering", site="resid_post", layer=layer, position="last",
    chunk=examples * rows,
  )  # fmt: skip


def steering(
  model: LoadedModel,
  where,
  vector,
  layer: int,
  strengths: Sequence[float] | None = None,
  field: str = "vector",
) -> Edits:
  """The edits that add a direction to the stream at some tokens.

  Args:
    model: from `load_model`.
    where: `[example, pos]` bool.
    vector: `[d_model]`, finite.
    layer: after which it is added.
    strengths: one row of a sweep each; None: a single edit of strength 1,
      which `generate` takes.
    field: what an error calls the vector.

  Raises:
    ValueError: a vector or a layer that the model does not have.
  """
  config, vector = model.config, np.asarray(vector, np.float64)
  check(
    vector.shape == (config.d_model,) and bool(np.isfinite(vector).all()),
    field,
    f"shape {vector.shape}",
    f"{config.d_model} finite numbers",
    "measure it on this model",
  )
  check(
    0 <= layer < config.n_layers,
    "layer",
    layer,
    f"0 to {config.n_layers - 1}",
    "name a layer of the model",
  )
  chosen = np.arange(config.n_layers) == layer
  gate = chosen[:, None, None, None] * np.asarray(where)[None, :, :, None]
  if strengths is not None:
    gate = np.multiply.outer(np.asarray(strengths, np.float64), gate)
  value = np.broadcast_to(vector, (config.n_layers, 1, 1, config.d_model))
  return Edits(resid_post=(Shift(*_as_params(model, gate, value)),))


def steered_layer(config: ModelConfig) -> int:
  """A third of all layers."""
  return config.n_layers // 3


def last_tokens(pairs: PromptPairs) -> np.ndarray:
  """`[example, pos]` bool, the tokens that predict the answers."""
  return np.arange(pairs.clean.shape[1]) == pairs.answer_pos[:, None]


def _answers(model, pairs, edits, n, examples, rows):
  """`[example, row]` logit differences of all edits, and those of the model."""
  check_pairs(model.config, pairs)
  examples, where = min(examples, len(pairs)), last_tokens(pairs)
  edited, base = np.zeros((len(pairs), n)), np.zeros(len(pairs))
  for index, place in chunks.slices(len(pairs), examples):
    batch = batch_of(pairs, index)
    sweep = general_sweep(
      model.model,
      model.params,
      batch.clean,
      edits(where[index]),
      LogitDifference(jnp.asarray(batch.answer), jnp.asarray(batch.foil)),
      answer=batch.answer_pos,
      key_valid=batch.key_valid,
      rows=rows,
    )
    real = place.stop - place.start
    base[place] = sweep.base[:real]
    edited[place] = (sweep.base - sweep.effect)[:, :real].T
  return edited, base


def _as_params(model, *arrays):
  dtype = jax.tree.leaves(model.params)[0].dtype
  return [jnp.asarray(array, dtype) for array in arrays]


def _labelled(model, pairs, edited, base, dims, coords, began, **about):
  """The dataset of some edits."""
  units = {"long_name": "logit difference", "units": results.LOGITS}
  return xr.Dataset(
    {
      "edited": (("example", *dims), edited, units),
      "base": ("example", base, units),
    },
    labels(pairs) | coords,
    attrs=results.provenance(
      model=model, pairs=pairs, wall_s=time.perf_counter() - began, **about
    ),
  )
