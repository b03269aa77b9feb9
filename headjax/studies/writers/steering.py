"""What can be done with the groups? Taken away, transplanted, or added.

The same prompts answer to all three, so one table compares them. That a lesion
helps does not say that adding a vector does: no such claim is made.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from headjax.data.pairs import PromptPairs
from headjax.geometry.circuits import Factored
from headjax.geometry.spectra import spectrum
from headjax.interventions.answer_edits import (
  last_tokens,
  steer,
  steered_layer,
  steering,
  transplant,
)
from headjax.interventions.group_lesions import lesion_groups
from headjax.models.generate import generate
from headjax.models.load import LoadedModel
from headjax.models.sites import Edits
from headjax.statistics.bca import bca_mean
from headjax.studies.writers.cell import GROUPS, Cell
from headjax.studies.writers.explaining import roles, some_roles
from headjax.studies.writers.prompts import Prompts

STRENGTHS = (0.5, 1.0, 2.0, 4.0)
PROMPTS = 200  # Source: paper C, of the transplant


def steering_vectors(
  writes, writers: Sequence[tuple[int, int]], cancellers
) -> dict[str, np.ndarray]:
  """Directions made of what the groups write on average.

  Args:
    writes: `[layer, head, d_model]` mean writes at the answer.
    writers: heads (layer, head).
    cancellers: likewise; at least one head in both together.

  Returns:
    `v_FV`, the mean over both groups; `v_W` and `v_C`, those of one, if it has
    heads; and `v_PCA`, the first right singular vector of all writes, turned
    to the side of `v_W` (without writers, of `v_FV`) and as long.

  Source: paper C, steering vectors; the lengths are ours.
  """
  table = np.stack([writes[head] for head in (*writers, *cancellers)])
  found = {"v_FV": table.mean(axis=0)}
  n = len(writers)
  found |= {"v_W": table[:n].mean(axis=0)} if n else {}
  found |= {"v_C": table[n:].mean(axis=0)} if len(table) > n else {}
  main = found.get("v_W", found["v_FV"])
  direction = spectrum(Factored(np.eye(len(table)), table)).writes[0]
  side = 1.0 if direction @ main >= 0 else -1.0
  return found | {"v_PCA": side * direction * np.linalg.norm(main)}


def act_on_groups(
  model: LoadedModel,
  prompts: Prompts,
  found: Cell,
  writes: xr.Dataset,
  *,
  strengths: Sequence[float] = STRENGTHS,
) -> dict[str, xr.Dataset]:
  """Lesions, transplants and steering on the same prompts.

  Args:
    model: from `load_model`.
    prompts: of the cell; the first evaluation prompts are run.
    found: the cell.
    writes: of the part "writes".
    strengths: of the steering.

  Returns:
    `lesion`, `transplant` and `steer`, whose groups are those of GROUPS.

  Raises:
    ValueError: there are no writers and no cancellers.
  """
  some_roles(found)
  pairs = prompts.evaluation.pairs
  pairs = pairs.select(slice(min(PROMPTS, len(pairs))))
  masks = np.zeros((3, *found.discovery.p.shape), bool)
  for i, group in enumerate(roles(found)):
    for head in group:
      masks[i, *head] = masks[2, *head] = True
  vectors = steering_vectors(writes["mean"].values, *roles(found))
  return {
    "lesion": lesion_groups(model, pairs, masks),
    "transplant": transplant(model, pairs, masks, writes.output.values),
    "steer": steer(model, pairs, vectors, strengths=strengths),
  }


def acted(
  data: Mapping[str, xr.Dataset], *, draws: int = 10_000, seed: int = 0
) -> list[dict[str, object]]:
  """One table of what was done: changes of answers and of accuracy.

  Args:
    data: of `act_on_groups`.
    draws: resamples.
    seed: of the resamples.

  Returns:
    Rows with the kind, what of, its strength, and the paired changes of the
    logit difference and of the accuracy with their BCa intervals.
  """
  rows = []
  for kind, field in (("lesion", "lesioned"), ("transplant", "edited")):
    dataset = data[kind]
    for i, group in enumerate(GROUPS):
      after = dataset[field].values[:, i]
      row = {"kind": kind, "of": group, "strength": 1.0}
      rows.append(row | _changes(dataset.base.values, after, draws, seed))
  steered = data["steer"]
  for name in steered.vector.values.tolist():
    for strength in steered.strength.values.tolist():
      after = steered.edited.sel(vector=name, strength=strength).values
      row = {"kind": "steering", "of": name, "strength": strength}
      rows.append(row | _changes(steered.base.values, after, draws, seed))
  return rows


def _changes(before, after, draws, seed) -> dict[str, float]:
  """Paired changes of the logit difference and of the accuracy."""
  found = {}
  for name, a, b in (
    ("logits", before, after),
    ("accuracy", before > 0, after > 0),
  ):
    change = bca_mean(b.astype(float) - a.astype(float), draws=draws, seed=seed)
    found |= {
      name: change.estimate,
      f"{name}_low": change.low,
      f"{name}_high": change.high,
    }
  return found


def write_on(
  model: LoadedModel,
  pairs: PromptPairs,
  vectors: Mapping[str, np.ndarray],
  *,
  strength: float = 1.0,
  max_new: int = 4,
  layer: int | None = None,
) -> list[dict[str, object]]:
  """What the model writes after prompts, plain and with each vector added.

  The vectors are added to the last token of the prompt, and to no new one.

  Args:
    model: from `load_model`, with a tokenizer.
    pairs: prompts, such as those with shuffled labels; the references are not
      run.
    vectors: name -> `[d_model]`.
    strength: of all vectors.
    max_new: tokens to write.
    layer: after which they are added; None: a third of all layers.

  Returns:
    A row for each prompt and each vector, "none" among them: the prompt's
    number, what is written, and whether it begins with the answer.
  """
  layer = steered_layer(model.config) if layer is None else layer
  where = last_tokens(pairs)
  rows = []
  for name, vector in ({"none": None} | dict(vectors)).items():
    edits = Edits()
    if vector is not None:
      edits = steering(model, where, strength * np.asarray(vector), layer)
    ids = generate(
      model, pairs.clean, lengths=pairs.lengths, max_new=max_new, edits=edits
    )
    rows += [
      {
        "prompt": i,
        "vector": name,
        "text": model.tokenizer.decode(row.tolist()),
        "answered": bool(row[0] == pairs.answer[i]),
      }
      for i, row in enumerate(ids)
    ]
  return rows
