"""Which heads carry a function? Each one's mean output, put elsewhere.

The output that a head gives on average on prompts which show a task replaces
its output at the last token of prompts that do not, each head alone.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from headjax import results
from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks, suffix
from headjax.interventions.group_lesions import mean_outputs
from headjax.interventions.questions import (
  Question,
  batch_of,
  check_pairs,
  suffix_inputs,
)
from headjax.interventions.sweep import PRECISION, sweep_layers
from headjax.models.load import LoadedModel

_QUESTION = Question("z", "last", "log_probability")


def answer_outputs(
  model: LoadedModel, pairs: PromptPairs, *, examples: int = 64
) -> np.ndarray:
  """What each head gives on average at the answer, `[layer, head, d_head]`.

  Args:
    model: from `load_model`.
    pairs: prompts; the references are not run.
    examples: at once.
  """
  line = np.arange(pairs.clean.shape[1])
  last = (line == pairs.answer_pos[:, None]).astype(np.int8)
  return mean_outputs(model, pairs, last, 2, examples=examples)[1]


def indirect_effects(
  model: LoadedModel,
  pairs: PromptPairs,
  means: np.ndarray,
  *,
  examples: int = 16,
  progress: bool = False,
) -> xr.Dataset:
  """How much more likely the answer gets, for every head.

  Args:
    model: from `load_model`.
    pairs: prompts that do not show the task, such as those with shuffled
      labels; the references are not run.
    means: `[layer, head, d_head]` of `answer_outputs` on prompts that do.
    examples: at once.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `effect[example, layer, head]`, the probability of the answer
    after patching minus that before, and `base[example]`, that before.

  Raises:
    ValueError: means of another model, or prompts that it cannot run.

  Source: Todd et al. (2024), the causal indirect effect; its mean over the
    examples (and tasks) is their AIE.
  """
  check_pairs(model.config, pairs)
  config = model.config
  sites = (config.n_layers, config.n_heads)
  check(
    np.shape(means) == (*sites, config.d_head),
    "means",
    f"shape {np.shape(means)}",
    f"{(*sites, config.d_head)}",
    "measure them on this model",
  )
  began = time.perf_counter()
  examples = min(examples, len(pairs))
  dtype = jax.tree.leaves(model.params)[0].dtype
  value = jnp.asarray(np.asarray(means)[:, None, None], dtype)
  effect = np.zeros((len(pairs), *sites))
  base = np.zeros(len(pairs))
  bar = tqdm(
    total=sites[0] * sites[1] * -(-len(pairs) // examples),
    unit="patch",
    desc=f"{pairs.name}: mean outputs",
    disable=not progress,
  )
  with bar, jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(pairs), examples):
      batch, n = batch_of(pairs, index), place.stop - place.start
      last = pairs.answer_pos[index]
      n_pos = pairs.clean.shape[1]
      window = suffix.make_window(config, last, last, n_pos)
      prepared = suffix_inputs(
        model.model, _QUESTION, model.params, batch, window, value
      )
      sweep = sweep_layers(
        model.model, model.params, *prepared, progress=bar.update
      )
      before = sweep.base[:n, None, None]
      drop = np.moveaxis(sweep.effect, -1, 0)[:n]
      effect[place] = np.exp(before) * np.expm1(-drop)
      base[place] = np.exp(sweep.base[:n])
    provenance = results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=examples,
      method="mean patching",
      site="z",
      position="last",
      metric="probability",
    )
  found = results.dataset(
    effect,
    base,
    group=pairs.group,
    condition=pairs.condition,
    provenance=provenance,
  )
  for name, text in {"effect": ", patched minus clean", "base": ""}.items():
    about = {"long_name": f"probability of the answer{text}", "units": "1"}
    found[name].attrs = about
  return found


def ranked(effects: np.ndarray) -> list[tuple[int, int]]:
  """All heads (layer, head) by falling mean effect.

  Args:
    effects: `[example, layer, head]`.

  Examples:
    >>> ranked([[[0.1, 0.3], [-0.9, 0.2]]])
    [(0, 1), (1, 1), (0, 0), (1, 0)]
  """
  mean = np.asarray(effects).mean(axis=0)
  order = np.argsort(-mean, axis=None, kind="stable")
  return [tuple(map(int, divmod(i, mean.shape[1]))) for i in order.tolist()]
