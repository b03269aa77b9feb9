"""How much of a head's patch do later components make up for?

The direct effect of a head keeps everything after it at its clean values; the
total effect lets it respond. Total minus direct is negative where the network
repairs what the patch took away, and positive where it carries the patch
further.

Source: McGrath et al. 2023 (the Hydra effect), as paper A, section 7 has it.
"""

import numpy as np
import xarray as xr

from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions.direct import direct_effects
from headjax.models.load import LoadedModel
from headjax.statistics import head_intervals, mean_effect

TOP = 5


def measure(
  model: LoadedModel, pairs: PromptPairs, *, progress: bool = False
) -> xr.Dataset:
  """The direct effect of every head; its total effect is `patch_heads`'."""
  del progress  # one pass without a loop worth showing
  return direct_effects(model, pairs)


def heads(
  direct: xr.Dataset, total: xr.Dataset, *, draws: int = 2000
) -> list[dict[str, float]]:
  """One row a head: total and direct effect, and what lies between them.

  Args:
    direct: of `measure`.
    total: of `patch_heads` on the same prompts.
    draws: resamples of the examples.

  Returns:
    Rows with `total`, `direct` and `compensation` = total - direct in logits,
    the last with its 95% interval over examples.
  """
  _check_same(direct, total)
  gap = head_intervals(total.effect.values - direct.effect.values, draws=draws)
  e, d = (mean_effect(data.effect.values) for data in (total, direct))
  return [
    {
      "layer": layer,
      "head": head,
      "total": float(e[layer, head]),
      "direct": float(d[layer, head]),
      "compensation": float(gap.estimate[layer, head]),
      "low": float(gap.low[layer, head]),
      "high": float(gap.high[layer, head]),
    }
    for layer, head in np.ndindex(e.shape)
  ]


def summarise(
  direct: xr.Dataset, total: xr.Dataset, *, top: int = TOP
) -> dict[str, float]:
  """Total, direct and compensation of the top heads together.

  Args:
    direct: of `measure`.
    total: of `patch_heads` on the same prompts.
    top: heads of largest total effect that are summed over.

  Returns:
    `total` and `direct` in logits, summed over the top heads, the
    `direct_share`, and `repaired`, the share of all heads with a positive
    direct effect whose total effect is smaller.
  """
  _check_same(direct, total)
  e, d = (mean_effect(data.effect.values) for data in (total, direct))
  chosen = np.argsort(-e, axis=None, kind="stable")[:top]
  helps = d > 0
  sums = float(e.flat[chosen].sum()), float(d.flat[chosen].sum())
  return {
    "total": sums[0],
    "direct": sums[1],
    "direct_share": sums[1] / sums[0] if sums[0] else float("nan"),
    "repaired": float((e < d)[helps].mean()) if helps.any() else float("nan"),
  }


def _check_same(direct: xr.Dataset, total: xr.Dataset) -> None:
  for name in ("model_digest", "pairs_digest"):
    check(
      direct.attrs[name] == total.attrs[name],
      name,
      f"{direct.attrs[name][:12]} and {total.attrs[name][:12]}",
      "the same for both effects",
      "measure both on one model and one set of prompts",
    )
