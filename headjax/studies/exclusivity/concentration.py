"""Do a task's effects sit in few heads? Numbers of section 5.2, from results.

Everything here is a function of what `patch_heads` saved: E and Neff with its
two factors (tables 3 and 6), the three checks of Neff, the clean performance
(table 5), and the differences between models.

Source: paper A, section 5.2 and appendix C (robustness of Neff).
"""

import numpy as np
import xarray as xr

from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions.heads import patch_heads
from headjax.models.load import LoadedModel
from headjax.statistics import (
  by_condition,
  concentration,
  leave_one_group_out,
  mean_effect,
  neff,
)
from headjax.statistics.resampling import percentiles, resampled

LEVEL = 0.95


def measure(
  model: LoadedModel, pairs: PromptPairs, *, progress: bool = False
) -> xr.Dataset:
  """Patches every head by the reference, each alone; see `patch_heads`."""
  return patch_heads(model, pairs, progress=progress)


def performance(data: xr.Dataset) -> dict[str, float]:
  """How well the unpatched model does the task (table 5)."""
  base = data.base.values
  return {
    "examples": len(base),
    "accuracy": float((base > 0).mean()),
    "margin": float(base.mean()),
  }


def summarise(data: xr.Dataset, *, draws: int = 5000) -> dict[str, float]:
  """E, Neff, its factors and its checks, of one model on one task.

  Args:
    data: of `measure`, on the evaluation split.
    draws: permutations for the null of `n_index`; the bootstrap has as many
      resamples as the paper, 2,000, or `draws` if that is less.

  Returns:
    `E` in logits and numbers of heads, indices and layers; `neff_low` and
    `neff_high` are the ends of the 95% interval over examples, `neff_example`
    takes absolute values before the mean, `top_share` is the largest |e| / E,
    `left_out_change` the largest relative change when a lexical group is left
    out (nan without groups), `neff_condition_0` ... the value within each
    balanced condition.
  """
  found = concentration(data.effect, draws=draws)
  low, high = percentiles(neff_resamples(data, draws=draws), LEVEL)
  size = np.abs(mean_effect(data.effect.values))
  layer, head = np.unravel_index(size.argmax(), size.shape)
  return {
    "E": found.total,
    "neff": found.neff,
    "neff_low": low,
    "neff_high": high,
    "n_index": found.n_index,
    "n_layer": found.n_layer,
    "n_index_null": found.n_index_null_median,
    "p_index": found.p_index,
    "neff_example": found.neff_example,
    "top_head": f"L{layer}H{head}",
    "top_share": float(size.max() / found.total),
    "left_out_change": _left_out(data),
  } | {
    f"neff_condition_{label}": value
    for label, value in _conditions(data).items()
  }


def neff_resamples(data: xr.Dataset, *, draws: int = 2000) -> np.ndarray:
  """`[draw]` Neff of resampled examples; equal draws for equal examples."""
  return resampled(neff, data.effect.values, draws=min(draws, 2000))


def difference(
  a: xr.Dataset,
  b: xr.Dataset,
  resamples: tuple[np.ndarray, np.ndarray] | None = None,
) -> dict[str, float]:
  """How much less concentrated one model is than another on a task.

  Args:
    a: of `measure`; both on the same examples.
    b: of another model with as many heads.
    resamples: what `neff_resamples` gives for both, if it is known.

  Returns:
    `difference`, Neff of a minus that of b, with its paired 95% interval over
    examples, `ratio`, in how many `conditions` a has the smaller Neff, and how
    many lexical groups reverse the sign when left out.

  Raises:
    ValueError: other examples, or another number of heads.
  """
  _check_comparable(a, b)
  values = resamples or (neff_resamples(a), neff_resamples(b))
  low, high = percentiles(values[0] - values[1], LEVEL)
  one, other = (float(neff(mean_effect(d.effect.values))) for d in (a, b))
  conditions = _conditions(a), _conditions(b)
  return {
    "difference": one - other,
    "low": low,
    "high": high,
    "ratio": one / other,
    "conditions": len(conditions[0]),
    "conditions_below": sum(
      conditions[0][label] < conditions[1][label] for label in conditions[0]
    ),
    "groups_reversing": _reversals(a, b, one - other),
  }


def _check_comparable(a: xr.Dataset, b: xr.Dataset) -> None:
  heads = [d.sizes["layer"] * d.sizes["head"] for d in (a, b)]
  check(
    heads[0] == heads[1],
    "models",
    f"{heads[0]} and {heads[1]} heads",
    "equally many heads",
    "compare models of one size",
  )
  check(
    a.attrs["pairs_digest"] == b.attrs["pairs_digest"],
    "models",
    "results on different examples",
    "the same prompts for both",
    "measure both with the same task, split and number of examples",
  )


def _conditions(data: xr.Dataset) -> dict[int, float]:
  if "condition" not in data.coords:
    return {}
  return by_condition(neff, data.effect, data.condition.values)


def _groups(data: xr.Dataset) -> bool:
  return "group" in data.coords and len(np.unique(data.group.values)) > 1


def _left_out(data: xr.Dataset) -> float:
  if not _groups(data):
    return float("nan")
  return leave_one_group_out(
    neff, data.effect, data.group.values
  ).largest_change


def _reversals(a: xr.Dataset, b: xr.Dataset, whole: float) -> int:
  """How many groups reverse the sign of the difference when left out."""
  if not _groups(a):
    return 0
  without = [
    leave_one_group_out(neff, d.effect, d.group.values).values for d in (a, b)
  ]
  return sum(
    (without[0][group] - without[1][group]) * whole < 0 for group in without[0]
  )
