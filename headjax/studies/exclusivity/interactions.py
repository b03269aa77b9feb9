"""Do the effects of the top heads add up? Pairs of heads, patched together.

E and Neff patch one head at a time, which says nothing about joint effects.
Here the top heads of a task are patched alone, in pairs and all at once; what
is left of a joint effect after the single ones is their interaction.
"""

import itertools

import numpy as np
import xarray as xr

from headjax.data.pairs import PromptPairs
from headjax.interventions.joint import patch_sets
from headjax.models.load import LoadedModel
from headjax.statistics.top_pairs import top_heads

TOP = 5
ALL = "all"


def measure(
  model: LoadedModel,
  pairs: PromptPairs,
  effects: xr.DataArray,
  *,
  top: int = TOP,
  progress: bool = False,
) -> xr.Dataset:
  """Patches the top heads alone, in pairs and together.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts, of another split than `effects`.
    effects: `[example, layer, head]`, which choose the heads.
    top: how many heads.
    progress: whether to show a progress bar.

  Returns:
    The dataset of `patch_sets`; a set is named by its heads, and "all".
  """
  heads = top_heads(effects, top)
  sets = {_name([head]): [head] for head in heads}
  for two in itertools.combinations(heads, 2):
    sets[_name(two)] = list(two)
  return patch_sets(model, pairs, sets | {ALL: heads}, progress=progress)


def pairs_of(data: xr.Dataset) -> list[dict[str, float | str]]:
  """One row a pair of heads: single effects, joint effect and interaction.

  Args:
    data: of `measure`.

  Returns:
    Rows with `a`, `b`, their mean `effect_a`, `effect_b` and `joint` in
    logits, `interaction` = joint - effect_a - effect_b (negative: each makes
    the other redundant), and `relative` to |effect_a| + |effect_b|.
  """
  effect = _means(data)
  singles = [name for name in effect if name != ALL and "+" not in name]
  rows = []
  for a, b in itertools.combinations(singles, 2):
    joint = effect[f"{a}+{b}"]
    interaction = joint - effect[a] - effect[b]
    size = abs(effect[a]) + abs(effect[b])
    rows.append(
      {
        "a": a,
        "b": b,
        "effect_a": effect[a],
        "effect_b": effect[b],
        "joint": joint,
        "interaction": interaction,
        "relative": interaction / size if size else float("nan"),
      }
    )
  return rows


def summarise(data: xr.Dataset) -> dict[str, float]:
  """Whether the top heads' effects add up, all together and in pairs.

  Args:
    data: of `measure`.

  Returns:
    `sum` of the single effects and `joint` effect of all top heads in logits,
    `joint_share` = joint / sum, and over the pairs the median of |relative|
    and the share of pairs with a negative interaction.
  """
  effect, rows = _means(data), pairs_of(data)
  total = sum(
    value for name, value in effect.items() if name != ALL and "+" not in name
  )
  relative = np.array([row["relative"] for row in rows])
  return {
    "sum": total,
    "joint": effect[ALL],
    "joint_share": effect[ALL] / total if total else float("nan"),
    "median_relative": float(np.median(np.abs(relative))),
    "negative_share": float((relative < 0).mean()),
  }


def _name(heads) -> str:
  return "+".join(f"L{layer}H{head}" for layer, head in heads)


def _means(data: xr.Dataset) -> dict[str, float]:
  means = data.effect.mean("example").values
  return dict(zip(data["set"].values.tolist(), means.tolist(), strict=True))
