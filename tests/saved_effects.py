"""Results as `patch_heads` saves them, with effects of our choice."""

import json

import numpy as np
import xarray as xr

from headjax import results


def saved(effect, base=None, *, group=None, condition=None, **attributes):
  """A dataset `effect[example, layer, head]` with labels of a run.

  Args:
    effect: `[example, layer, head]`, or `[layer, head]` for two equal examples.
    base: `[example]` clean logit differences; default 1.
    group: `[example]` labels, or None.
    condition: `[example]` labels, or None.
    **attributes: beside or in place of those of a run of `learned`.
  """
  effect = np.asarray(effect, float)
  if effect.ndim == 2:
    effect = np.stack([effect, effect])
  about = {
    results.MARK: "0", "model_digest": "m", "pairs_digest": "p",
    "run": "learned-0", "design": "learned@tiny", "seed": 0, "corpus": "toy",
    "task": "sva", "validation_loss": 1.0, "parameters": 99,
    "model_config": json.dumps({"write": {"kind": "learned"}}),
  }  # fmt: skip
  return results.dataset(
    effect,
    np.ones(len(effect)) if base is None else np.asarray(base, float),
    group=group,
    condition=condition,
    provenance=about | attributes,
  )


def sets(means, base=1.0, **variables) -> xr.Dataset:
  """A dataset of `patch_sets` whose two examples have these mean effects.

  Args:
    means: name -> mean effect.
    base: mean clean logit difference.
    **variables: further arrays, each (dims, values).
  """
  effect = np.array([[m - 0.5, m + 0.5] for m in means.values()]).T
  return xr.Dataset(
    {
      "effect": (("example", "set"), effect),
      "base": ("example", [base - 0.1, base + 0.1]),
    }
    | variables,
    {"set": list(means)},
  )
