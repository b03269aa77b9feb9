"""What has to be measured for the study? Three datasets of a model and a task.

What the heads write, with and without their labels shuffled; what a head from
the clean prompt does in its rule flip; what the model answers without groups
of heads. Everything else is computed from these.
"""

import time
from collections.abc import Sequence

import numpy as np
import xarray as xr

from headjax.checks import check
from headjax.data.in_context import BUCKETS, InContext
from headjax.data.pairs import PromptPairs
from headjax.interventions.answers import logit_differences
from headjax.interventions.clamps import clamp_heads, nothing
from headjax.interventions.direct import direct_effects
from headjax.interventions.direct_logits import direct_logits
from headjax.interventions.group_lesions import lesion_groups, mean_outputs
from headjax.models.load import LoadedModel

Head = tuple[int, int]


def attributions(
  model: LoadedModel,
  pairs: PromptPairs,
  shuffled: Sequence[PromptPairs],
  *,
  examples: int = 64,
) -> xr.Dataset:
  """What every head writes for the answer, and does with shuffled labels.

  One forward for each set of prompts.

  Args:
    model: from `load_model`.
    pairs: the prompts.
    shuffled: the same with shuffled labels, in the same order.
    examples: at once.

  Returns:
    `attribution[example, layer, head]`, `shuffled[shuffle, example, layer,
    head]` and `base[example]`, in logits (nats).

  Raises:
    ValueError: shuffled prompts of other numbers, or what `direct_logits`
      refuses.
  """
  for other in shuffled:
    check(
      len(other) == len(pairs),
      "shuffled",
      f"{len(other)} prompts",
      f"{len(pairs)}, as there are",
      "shuffle the labels of the same prompts",
    )
  check(bool(shuffled), "shuffled", "none", "some", "shuffle the labels")
  began = time.perf_counter()
  found = direct_logits(model, pairs, examples=examples)
  tables = [
    direct_logits(model, other, examples=examples).attribution.values
    for other in shuffled
  ]
  dims = ("shuffle", *found.attribution.dims)
  table = (dims, np.stack(tables), found.attribution.attrs)
  found = found.assign(shuffled=table)
  return found.assign_attrs(
    forwards=1 + len(tables), wall_s=time.perf_counter() - began
  )


def path_effects(
  model: LoadedModel,
  pairs: PromptPairs,
  heads: Sequence[Head],
  *,
  progress: bool = False,
) -> xr.Dataset:
  """What a head of the clean prompt does when it is put into the rule flip.

  Two forwards give the direct effects of all heads in closed form, the total
  effects are a sweep over the candidates.

  Args:
    model: from `load_model`.
    pairs: clean prompts and their rule flips as references.
    heads: the candidates, (layer, head).
    progress: whether to show a progress bar.

  Returns:
    `direct` and `total[example, candidate]`, patched less not patched, and
    `clean` and `flipped[example]`, the logit differences of both prompts for
    the clean prompt's answer, all in logits (nats); the candidates are known
    by their coordinates `source_layer` and `source_head`.

  Raises:
    ValueError: no heads, or what the sweeps refuse.

  Source: paper C, path patching.
  """
  began = time.perf_counter()
  # A sweep changes clean prompts: here the flips, towards the clean ones.
  turned = PromptPairs(
    pairs.reference,
    pairs.clean,
    pairs.answer,
    pairs.foil,
    pairs.lengths,
    name=pairs.name,
    split=pairs.split,
    group=pairs.group,
  )
  holds = {"total": nothing(model.config)}
  total = clamp_heads(model, turned, holds, sources=heads, progress=progress)
  direct = direct_effects(model, turned)
  layers, index = np.array(heads).T
  about = total.effect.attrs | {
    "long_name": "logit difference, patched minus flipped"
  }
  values = {
    # A drop is less patched than before; an effect is more.
    "direct": -direct.effect.values[:, layers, index],
    "total": -total.effect.values[:, 0],
  }
  return xr.Dataset(
    {name: (("example", "candidate"), x, about) for name, x in values.items()}
    | {
      "clean": ("example", logit_differences(model, pairs), total.base.attrs),
      "flipped": ("example", total.base.values, total.base.attrs),
    },
    {
      "source_layer": ("candidate", layers),
      "source_head": ("candidate", index),
    },
    attrs=total.attrs
    | {
      "method": "path patching",
      "wall_s": time.perf_counter() - began,
      # Of these, two are for the direct effects, of all heads.
      "forwards": 5,
      "swept_heads": len(heads),
    },
  )


def lesions(
  model: LoadedModel,
  prompts: InContext,
  groups,
  *,
  means_from: InContext | None = None,
) -> xr.Dataset:
  """The answers without groups of heads, by zero or by means.

  Args:
    model: from `load_model`.
    prompts: to evaluate on.
    groups: `[group, layer, head]` bool.
    means_from: prompts whose means, by kind of token, replace the heads; None
      replaces them by zero.

  Returns:
    As of `lesion_groups`.
  """
  if means_from is None:
    return lesion_groups(model, prompts.pairs, groups)
  means = mean_outputs(
    model, means_from.pairs, means_from.buckets, len(BUCKETS)
  )
  return lesion_groups(
    model, prompts.pairs, groups, means=means, kinds=prompts.buckets
  )
