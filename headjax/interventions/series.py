"""How does every head's effect grow in training? One sweep a checkpoint.

All checkpoints have one architecture, so the programs are compiled for the
first and serve all.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import xarray as xr

from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions.heads import patch_heads
from headjax.models.load import LoadedModel

# What differs from step to step, and is kept as a label of the step.
_LABELS = {"model_digest": "digest", "wall_s": "wall_s"}


def patch_series(
  series: Iterable[tuple[int, LoadedModel]], pairs: PromptPairs, **options: Any
) -> xr.Dataset:
  """Patches every head at every checkpoint; see `measure_series`.

  Args:
    series: steps and models.
    pairs: the prompts, the same for all.
    **options: of `patch_heads`.

  Returns:
    Its dataset with one more dimension, `step`, before the others.

  Raises:
    ValueError: as `measure_series`, or what `patch_heads` refuses.
  """
  return measure_series(
    series, lambda model: patch_heads(model, pairs, **options)
  )


def measure_series(
  series: Iterable[tuple[int, LoadedModel]],
  measure: Callable[[LoadedModel], xr.Dataset],
) -> xr.Dataset:
  """Measures every checkpoint.

  Args:
    series: steps and models, for instance from `load_series`; one model is in
      memory at a time.
    measure: from a model to a dataset with provenance.

  Returns:
    Its dataset with one more dimension, `step`, before the others; along it
    also the `digest` of each checkpoint and the time `wall_s` that it took.
    The attributes are those in which all steps agree.

  Raises:
    ValueError: no checkpoints, or tokenizers that differ.
  """
  found, vocabulary = {}, {}
  for step, model in series:
    tokenizer = model.tokenizer
    vocabulary[tokenizer and tokenizer.digest] = model.name
    check(
      len(vocabulary) == 1,
      "series",
      f"different tokenizers in {' and '.join(vocabulary.values())}",
      "the same one at every step",
      "keep the checkpoints of one run in the folder",
    )
    found[step] = measure(model)
    del model  # before the next one is loaded
  check(
    bool(found), "series", "no checkpoint", "at least one", "give some models"
  )
  labels = {
    name: ("step", np.array([d.attrs[kept] for d in found.values()]))
    for kept, name in _LABELS.items()
  }
  steps = xr.Variable("step", list(found), {"long_name": "training steps"})
  joined = xr.concat(
    [data.drop_attrs(deep=False) for data in found.values()], dim="step"
  )
  joined = joined.assign_coords(step=steps, **labels)
  return joined.assign_attrs(_common([d.attrs for d in found.values()]))


def at_step(series: xr.Dataset, step: int) -> xr.Dataset:
  """One checkpoint's result, as `patch_heads` gives it.

  Args:
    series: from `patch_series`.
    step: one of its steps.

  Raises:
    ValueError: it has no such step.
  """
  check(
    step in series.step,
    "step",
    step,
    "one of " + ", ".join(map(str, series.step.values)),
    "choose one of them",
  )
  found = series.sel(step=step, drop=True)
  return found.assign_attrs(model=f"{series.attrs['model']}@{step}")


def _common(attributes: list[dict[str, Any]]) -> dict[str, Any]:
  """What all have, the series' name, and when it was complete."""
  first, last = attributes[0], attributes[-1]
  kept = {
    name: value
    for name, value in first.items()
    if all(other.get(name) == value for other in attributes)
  }
  name = first["model"].rpartition("@")[0] or first["model"]
  return kept | {"model": name, "created_utc": last["created_utc"]}
