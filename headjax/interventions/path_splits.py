"""Which way does a head's effect take: directly, by MLPs, or by attention?

With D(S) the drop of the metric when a head is patched while the parts S are
clamped, "heads" all heads of later layers and "mlps" all MLPs from the source's
layer on,

  direct       D(heads and mlps)
  interaction  D(nothing) - D(heads) - D(mlps) + direct

and the rest belongs to the MLPs or to attention. From the state in which all
is clamped, one clamp is released first and its part is what that changes; the
other's part is all that is left. The two orders differ by the interaction.

Source: paper A, appendix B.3.
"""

import numpy as np
import xarray as xr

from headjax.checks import check
from headjax.interventions import clamps
from headjax.interventions.rerun import Hold
from headjax.models.config import ModelConfig

RELEASED_FIRST = ("mlps", "heads")
_HOLDS = ("nothing", "heads", "mlps", "everything")


def path_holds(config: ModelConfig) -> dict[str, Hold]:
  """The four holds whose effects make a split, for `clamp_heads`.

  A model without MLPs has nothing to hold there: then "mlps" is no clamp, and
  the parts of the MLPs and the interaction are 0.
  """
  no_mlps = config.mlp == "none"
  mlps = clamps.nothing if no_mlps else clamps.later_mlps
  builders = (clamps.nothing, clamps.later_heads, mlps, clamps.everything)
  return {
    name: build(config) for name, build in zip(_HOLDS, builders, strict=True)
  }


def path_splits(effect: xr.DataArray) -> xr.Dataset:
  """Splits effects by their paths, in both orders.

  Args:
    effect: from `clamp_heads` with at least the holds of `path_holds`; its
      dimension `hold` is used up, the others stay.

  Returns:
    `total`, `direct` and `interaction`, and with the dimension
    `released_first` ("mlps", the paper's figure 8, or "heads") the parts
    `via_mlps` and `via_attention`, all in the effect's unit. In either order
    direct, via_mlps and via_attention sum to the total.

  Raises:
    ValueError: a hold is missing.
  """
  there = set(np.atleast_1d(effect["hold"].values).tolist())
  missing = [name for name in _HOLDS if name not in there]
  check(
    not missing,
    "effect",
    f"no hold {' or '.join(missing)}",
    "the holds of path_holds",
    "pass them to clamp_heads",
  )
  total, heads, mlps, direct = (
    effect.sel(hold=name, drop=True) for name in _HOLDS
  )
  order = xr.Variable("released_first", list(RELEASED_FIRST))
  found = xr.Dataset(
    {
      "total": total,
      "direct": direct,
      "via_mlps": xr.concat([heads - direct, total - mlps], order),
      "via_attention": xr.concat([total - heads, mlps - direct], order),
      "interaction": total - heads - mlps + direct,
    }
  )
  for array in found.values():
    array.attrs = {"units": effect.attrs.get("units", "")}
  return found
