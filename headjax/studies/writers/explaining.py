"""What has to be measured to say how the groups work? One dataset a part.

A part runs the model once the cell is known. One that has no meaning for the
model, or for groups without heads, is left out, with its reason.
"""

import time
import types
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import xarray as xr

from headjax import results
from headjax.checks import check, check_choice
from headjax.data.in_context import BUCKETS
from headjax.data.repeats import repeated
from headjax.geometry.circuits import ov_circuit
from headjax.geometry.spectra import spectrum
from headjax.interventions.group_lesions import lesion_groups
from headjax.interventions.lesion_losses import answered, lesion_losses
from headjax.interventions.mean_patching import answer_outputs, indirect_effects
from headjax.interventions.patterns import head_scores
from headjax.interventions.rewritten import shuffled_values, without_heads
from headjax.interventions.sources import by_source
from headjax.models import weights
from headjax.models.generate import generate
from headjax.models.load import LoadedModel
from headjax.studies.writers.cell import Cell
from headjax.studies.writers.controls import nearest_controls, signed_groups
from headjax.studies.writers.prompts import Prompts
from headjax.studies.writers.released import Head
from headjax.studies.writers.rule_outs import upstream_writers

# Numbers of prompts. Source: paper C; Todd et al. for the first two.
MEANS, PATCHED, CONTROLS, LOSSES = 96, 32, 100, 64
N_CONTROLS = 10
_TEXTS, _TOKENS = 16, 48  # that the model writes itself


def explain(
  model: LoadedModel,
  prompts: Prompts,
  found: Cell,
  *,
  parts: Sequence[str] | None = None,
) -> tuple[dict[str, xr.Dataset], dict[str, str]]:
  """Measures the parts that say how writers and cancellers work.

  Args:
    model: from `load_model`.
    prompts: of the cell.
    found: the cell.
    parts: of PARTS; None means all.

  Returns:
    Part -> dataset, and part -> why there is none.
  """
  data, reasons = {}, {}
  for name in PARTS if parts is None else parts:
    check_choice("parts", name, PARTS)
    try:
      data[name] = PARTS[name](model, prompts, found)
    except ValueError as reason:
      reasons[name] = str(reason)
  return data, reasons


def roles(found: Cell) -> tuple[list[Head], list[Head]]:
  """Writers and cancellers."""
  return found.of_role("writer"), found.of_role("canceller")


def some_roles(found: Cell, *, both: bool = False) -> list[Head]:
  """All writers and cancellers; fails where there are none.

  Args:
    found: the cell.
    both: whether neither group may be empty.
  """
  groups = roles(found)
  check(
    all(groups) if both else any(groups),
    "groups",
    f"{len(groups[0])} writers and {len(groups[1])} cancellers",
    "at least one of each" if both else "at least one head",
    "there is nothing to explain",
  )
  return groups[0] + groups[1]


def _sources(model, prompts, found):
  """Attention and attribution at the answer, by kind of token."""
  discovery = prompts.discovery
  return by_source(model, discovery.pairs, discovery.buckets, BUCKETS)


def _mean_patching(model, prompts, found):
  """Means over clean prompts, put into prompts with shuffled labels."""
  paths, shuffled = prompts.paths.pairs, prompts.shuffled[0]
  means = answer_outputs(model, _first(paths, MEANS))
  return indirect_effects(model, _first(shuffled, PATCHED), means)


def _writes(model, prompts, found):
  """Mean writes at the answer, and the spectra of the OV circuits."""
  W_O = np.asarray(weights.per_query_head(model.params, model.config, "W_O"))
  W_V = np.asarray(weights.per_query_head(model.params, model.config, "W_V"))
  began, pairs = time.perf_counter(), prompts.discovery.pairs
  means = answer_outputs(model, pairs)
  top = spectrum(ov_circuit(W_V, W_O))
  dims = ("layer", "head", "coordinate")
  return xr.Dataset(
    {
      "output": (("layer", "head", "inner"), means),
      "mean": (dims, np.einsum("lhe,lhed->lhd", means, W_O)),
      "top_write": (dims, top.writes[:, :, 0]),
      "top_share": (("layer", "head"), top.top_share, {"units": "1"}),
    },
    attrs=results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=len(pairs),
      method="mean writes",
      position="last",
    ),
  )


def _values(model, prompts, found):
  """Attributions with values at other tokens."""
  return shuffled_values(model, prompts.discovery.pairs)


def _cascade(model, prompts, found):
  """Attributions without the writers that cancellers may answer."""
  some_roles(found, both=True)
  writers, cancellers = roles(found)
  sources = cascade_sources(_writes(model, prompts, found), found)
  every = sorted({head for heads in sources.values() for head in heads})
  check(
    bool(every),
    "cancellers",
    "none after a writer",
    "a writer in an earlier layer",
    "there is no cascade to look for",
  )
  return without_heads(model, prompts.discovery.pairs, every)


def cascade_sources(writes: xr.Dataset, found: Cell) -> dict[Head, list[Head]]:
  """Canceller -> the writers before it that it may answer."""
  writers, cancellers = roles(found)
  mean, top = writes["mean"].values, writes.top_write.values
  return {
    head: upstream_writers(head, writers, mean, top) for head in cancellers
  }


def _importance(model, prompts, found):
  """Losses of answers, and of the model's own text, without each head."""
  heads = some_roles(found)
  groups = np.zeros((len(heads), *found.discovery.p.shape), bool)
  for group, head in zip(groups, heads, strict=True):
    group[head] = True
  pairs = _first(prompts.evaluation.pairs, LOSSES)
  tokens, lengths, counted = answered(pairs)
  rules = lesion_losses(model, tokens, groups, lengths=lengths, counted=counted)
  text = lesion_losses(model, own_text(model, pairs.clean[:, :1]), groups)
  names = {"example": "text"}
  return rules.rename(lesioned="rules", base="rules_base").merge(
    text.rename(names | {"lesioned": "texts", "base": "texts_base"})
  )


def own_text(model: LoadedModel, starts: np.ndarray) -> np.ndarray:
  """What the model itself writes after a token, `[text, pos]` ids.

  Text that every model has, and that is likely to it: other text would have to
  be chosen for each of them.

  Args:
    model: from `load_model`.
    starts: `[text, 1]` first tokens, repeated as often as needed.
  """
  starts = np.resize(starts, (_TEXTS, 1))
  count = min(_TOKENS, model.config.n_ctx) - 1
  found = generate(model, starts, max_new=count, temperature=1.0)
  return np.hstack([starts, found])


def _induction(model, prompts, found):
  """What heads attend to in random tokens that are repeated."""
  bos = None if model.tokenizer is None else model.tokenizer.bos
  length = min(50, (model.config.n_ctx - 1) // 2)
  tokens = repeated(model.config.d_vocab, 5, length, bos=bos)
  return head_scores(model, tokens, name="repeated")


def _controls(model, prompts, found):
  """Lesions of the groups, of the largest heads, and of heads as large."""
  groups = control_groups(found)
  masks = np.zeros((3 * len(groups), *found.discovery.p.shape), bool)
  for i, (first, second) in enumerate(groups):
    for head in first:
      masks[3 * i, *head] = masks[3 * i + 2, *head] = True
    for head in second:
      masks[3 * i + 1, *head] = masks[3 * i + 2, *head] = True
  pairs = _first(prompts.evaluation.pairs, CONTROLS)
  return lesion_groups(model, pairs, masks)


def control_groups(found: Cell) -> list[tuple[list[Head], list[Head]]]:
  """Own groups, those of the largest attributions, and their controls."""
  count = len(some_roles(found))
  mean = found.discovery.control.mean
  largest = signed_groups(mean, count)
  return [
    roles(found),
    largest,
    *nearest_controls(mean, *largest, count=N_CONTROLS),
  ]


def _first(pairs, count):
  return pairs.select(slice(min(count, len(pairs))))


PARTS: Mapping[str, Callable[..., xr.Dataset]] = types.MappingProxyType(
  {
    "sources": _sources,
    "mean-patching": _mean_patching,
    "writes": _writes,
    "values": _values,
    "cascade": _cascade,
    "importance": _importance,
    "induction": _induction,
    "controls": _controls,
  }
)
