"""Does a move along the axis turn the verb, and one along another line not?

On prompts that the axis was not found on, the last position is moved just so
far that the model prefers the verbs of the other number, and as far along
random directions. Told are which verbs are preferred, and how likely right and
wrong verbs are among all words.
"""

import time
from typing import Any

import jax
import numpy as np
import xarray as xr

from headjax import results
from headjax.data.pairs import PromptPairs
from headjax.interventions.sweep import PRECISION
from headjax.models.load import LoadedModel
from headjax.studies.cores.number_axis import (
  EXAMPLES,
  Axis,
  is_plural,
  prepared,
  random_axis,
)
from headjax.studies.cores.steering import WANTED, Steering, preference


def turn(
  model: LoadedModel,
  axis: Axis,
  pairs: PromptPairs,
  *,
  draws: int = 3,
  seed: int = 0,
) -> xr.Dataset:
  """Verbs after moves along the axis, and as far along random directions.

  Args:
    model: with a tokenizer.
    axis: of one layer.
    pairs: prompts with attractors that the axis was not found on.
    draws: random directions.
    seed: of the first of them.

  Returns:
    A dataset with `strength[example]` in separations, and over `along` ("none",
    "core", "random 0" ..) and example: `preference` in nats, above 0 for the
    plural, and the probabilities `right` and `wrong`, each of two verbs;
    `plural[example]` is the subject's number.
  """
  began = time.perf_counter()
  plural, steer = is_plural(pairs), Steering(model, axis)
  wanted = np.where(plural, WANTED["singular"], WANTED["plural"])
  others = [random_axis(axis, seed + i) for i in range(draws)]
  strengths, logits = [], []
  with jax.default_matmul_precision(PRECISION):
    for steer.before, index, size in prepared(model, pairs):
      strength = steer.strengths(wanted[index])
      moves = [
        steer.moves(axis, 0 * strength),
        *(steer.moves(one, strength) for one in (axis, *others)),
      ]
      found = steer.log_probabilities(np.stack(moves))
      strengths.append(strength[:size])
      logits.append(found[:, :size])
  log_p = np.concatenate(logits, axis=1)
  p_plural, p_singular = (
    np.exp(part).sum(-1) for part in np.split(log_p, 2, axis=-1)
  )
  both, share = ("along", "example"), {"units": "1"}
  return xr.Dataset(
    {
      "strength": (
        "example", np.concatenate(strengths), {"units": "separations"},
      ),
      "preference": (both, preference(log_p), {"units": "nats"}),
      "right": (both, np.where(plural, p_plural, p_singular), share),
      "wrong": (both, np.where(plural, p_singular, p_plural), share),
    },
    {
      "along": ["none", "core", *(f"random {i}" for i in range(draws))],
      "plural": ("example", plural),
    },
    attrs=results.provenance(
      model=model, pairs=pairs, wall_s=time.perf_counter() - began,
      chunk=EXAMPLES, method="agreement turned", position="last", seed=seed,
      layer=axis.layer, separation=axis.separation,
    ),
  )  # fmt: skip


def turned_rows(found: xr.Dataset) -> list[dict[str, Any]]:
  """One row a number and direction; random ones are taken together.

  Args:
    found: of `turn`.

  Returns:
    `prefers other`, the share of the prompts whose verbs of the other number
    are preferred, mean probabilities, and the mean size of the moves.
  """
  rows, plural = [], found["plural"].values.astype(bool)
  names = found["along"].values.tolist()
  for number, mine in (("singular", ~plural), ("plural", plural)):
    for name in ("none", "core", "random"):
      here = found.isel(example=np.flatnonzero(mine)).sel(
        along=[one for one in names if one.split()[0] == name]
      )
      other = (here["preference"] > 0) == (number == "singular")
      moved = 0.0 if name == "none" else np.abs(here["strength"]).mean()
      rows.append(
        {
          "subject": number,
          "along": name,
          "prompts": int(mine.sum()),
          "prefers other": float(other.mean()),
          "right verbs": float(here["right"].mean()),
          "wrong verbs": float(here["wrong"].mean()),
          "separations": float(moved),
        }
      )
  return rows
