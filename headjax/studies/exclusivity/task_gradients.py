"""Do heads of one index share what the task asks of them? Section 5.3.

The gradient of the answer in each layer's attention output says how the answer
responds to what its heads write. Compared are these gradients of two layers,
whole and within the write spaces of two heads; the same of the language
modelling loss, which training follows; and what heads write on average.

Source: paper A, section 5.3 and appendix C (task gradients).
"""

import time

import numpy as np
import xarray as xr

from headjax import results
from headjax.data.pairs import PromptPairs
from headjax.interventions.gradients import gradient_products
from headjax.interventions.pooling import as_pairs
from headjax.interventions.writes import mean_writes
from headjax.models.load import LoadedModel

HEADS = ("source_layer", "source_head", "layer", "head")


def measure(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  sequences: np.ndarray | None = None,
  progress: bool = False,
) -> xr.Dataset:
  """Inner products of gradients, and of the heads' mean writes.

  Args:
    model: from `load_model`.
    pairs: prompts, whose clean side is run.
    sequences: `[sequence, pos]` ids of text, for the gradient of the language
      modelling loss; None leaves it out.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `task_layers[source_layer, layer]` and `task_heads`
    `[source_layer, source_head, layer, head]`, products summed over examples
    and positions of the logit difference's gradients, whole and projected onto
    two heads' write spaces; `loss_layers` and `loss_heads` of the loss; and
    `writes`, products of the heads' mean writes at the answer.

  Raises:
    ValueError: the model norms its attention output, or cannot run the input.
  """
  began = time.perf_counter()
  mean = mean_writes(model, pairs)
  flat = mean.reshape(-1, mean.shape[-1])
  shape = (model.config.n_layers, model.config.n_heads) * 2
  arrays = {"writes": (HEADS, (flat @ flat.T).reshape(shape))}
  asked = {"task": (pairs, "logit_difference")}
  if sequences is not None:
    asked["loss"] = (as_pairs(sequences), "next_token")
  for name, (prompts, objective) in asked.items():
    found = gradient_products(
      model, prompts, objective=objective, progress=progress
    )
    arrays[f"{name}_layers"] = (HEADS[::2], found.layers)
    arrays[f"{name}_heads"] = (HEADS, found.heads)
  sizes = dict(zip(HEADS, shape, strict=True))
  return xr.Dataset(
    arrays,
    {name: np.arange(n) for name, n in sizes.items()},
    attrs=results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=0,
      sequences=0 if sequences is None else len(sequences),
    ),
  )


def summarise(found: xr.Dataset) -> list[dict]:
  """A row for the task's gradient, and for the loss's if it was measured.

  Args:
    found: from `measure`.

  Returns:
    Mean cosines: of `adjacent` layers' whole gradients; of gradients projected
    onto the write spaces of two heads of different layers, with the
    `same_index` or `other_index`.
  """
  rows = []
  for name in ("task", "loss"):
    if f"{name}_layers" not in found:
      continue
    layers = _cosines(found[f"{name}_layers"].values)
    rows.append(
      {"gradient": name, "adjacent": float(np.diagonal(layers, 1).mean())}
      | _by_index(found[f"{name}_heads"].values)
    )
  return rows


def writes(found: xr.Dataset) -> dict[str, float]:
  """Mean cosines of the mean writes of heads of different layers.

  Args:
    found: from `measure`.

  Returns:
    `same_index` and `other_index`.
  """
  return _by_index(found.writes.values)


def lane_shares(found: xr.Dataset, gradient: str = "task") -> np.ndarray:
  """How much of each layer's gradient lies in what each head writes.

  Args:
    found: from `measure`.
    gradient: "task" or "loss".

  Returns:
    `[layer, head]`; where the heads of a layer write an orthogonal
    decomposition of the stream, they add up to 1.
  """
  heads = found[f"{gradient}_heads"].values
  layers = found[f"{gradient}_layers"].values
  return np.einsum("lhlh->lh", heads) / np.diagonal(layers)[:, None]


def _by_index(products: np.ndarray) -> dict[str, float]:
  """Mean cosines over pairs of layers, for equal and for other indices."""
  n_layers, n_heads = products.shape[:2]
  cosine = _cosines(products.reshape(n_layers * n_heads, -1))
  cosine = cosine.reshape(products.shape)
  first, second = np.triu_indices(n_layers, 1)
  across = cosine[first, :, second, :]
  same = np.eye(n_heads, dtype=bool)
  return {
    "same_index": _mean(across[:, same]),
    "other_index": _mean(across[:, ~same]),
  }


def _cosines(products: np.ndarray) -> np.ndarray:
  """Of vectors with these inner products; NaN for those of no length."""
  square = np.diagonal(products)
  norm = np.sqrt(np.where(square > 0, square, np.nan))
  return products / np.outer(norm, norm)


def _mean(values: np.ndarray) -> float:
  """Of those that are not NaN; NaN if there are none."""
  values = values[~np.isnan(values)]
  return float(values.mean()) if values.size else float("nan")
