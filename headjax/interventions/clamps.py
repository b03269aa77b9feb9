"""Which later parts does a head's effect need? Clamps.

To clamp a part is to keep its output at what it was in the clean run while a
head is patched. What is clamped is data: a `Hold` says it for every source
head, so that all clamps are one compiled program. A smaller effect under a
clamp is no flow through the clamped part: the rest of the network answers it
too, and the effect can even grow.

Source: paper A, appendix C (clamps).
"""

import time
from collections.abc import Mapping, Sequence

import jax
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from headjax import results
from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks, held_rows
from headjax.interventions.prepared import Prepared, labels
from headjax.interventions.rerun import Hold
from headjax.interventions.sweep import PRECISION
from headjax.models.config import ModelConfig
from headjax.models.load import LoadedModel

Head = tuple[int, int]


def nothing(config: ModelConfig) -> Hold:
  """No part is held: the plain effect."""
  sources = (config.n_layers, config.n_heads)
  return Hold(
    np.zeros(2 * sources, bool), np.zeros((*sources, sources[0]), bool)
  )


def later_heads(config: ModelConfig) -> Hold:
  """All heads of the layers after the source."""
  layers = np.arange(config.n_layers)
  later = (layers[None] > layers[:, None])[:, None, :, None]
  hold = nothing(config)
  return hold.replace(heads=np.broadcast_to(later, hold.heads.shape).copy())


def later_mlps(config: ModelConfig) -> Hold:
  """All MLPs from the source's own layer on.

  Raises:
    ValueError: the model has no MLPs.
  """
  check(
    config.mlp != "none",
    "later_mlps",
    "a model without MLPs",
    "MLPs to hold",
    "hold heads alone: everything is later_heads in this model",
  )
  layers = np.arange(config.n_layers)
  later = (layers[None] >= layers[:, None])[:, None]
  hold = nothing(config)
  return hold.replace(mlps=np.broadcast_to(later, hold.mlps.shape).copy())


def everything(config: ModelConfig) -> Hold:
  """Later heads and MLPs: what is left is the direct effect."""
  hold = later_heads(config)
  if config.mlp == "none":
    return hold
  return hold.replace(mlps=later_mlps(config).mlps)


def lane(config: ModelConfig, shift: int = 0) -> Hold:
  """The later heads of one index, the source's own plus `shift`.

  Args:
    config: of the model.
    shift: 0 for the source's own lane, else a control; cyclic.
  """
  index = np.arange(config.n_heads)
  same = (index[:, None] + shift) % config.n_heads == index[None]
  hold = later_heads(config)
  return hold.replace(heads=hold.heads & same[None, :, None])


def one_head(config: ModelConfig, layer: int, head: int) -> Hold:
  """A single head, for the sources in the layers before it.

  Args:
    config: of the model.
    layer: of the head that is held, from 0.
    head: its index, from 0.

  Raises:
    ValueError: the model has no such head.
  """
  _check_head(config, "head", (layer, head))
  hold = nothing(config)
  hold.heads[:layer, :, layer, head] = True
  return hold


def clamp_heads(
  model: LoadedModel,
  pairs: PromptPairs,
  holds: Mapping[str, Hold],
  *,
  site: str = "z",
  sources: Sequence[Head] | None = None,
  budget_bytes: int = 2 * chunks.GIB,
  progress: bool = False,
) -> xr.Dataset:
  """Patches heads, each alone, while other parts are clamped.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts.
    holds: name -> what is held.
    site: what takes its value on the reference prompt: "z", "q", "k" or "v".
    sources: heads (layer, head) to patch; None: all.
    budget_bytes: memory for the sweep, per device, beside the parameters.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `effect[example, hold, source]`, the drop of the logit
    difference, clean minus patched, in logits (nats), and `base[example]`; the
    sources are known by their coordinates `source_layer` and `source_head`.

  Raises:
    ValueError: no holds, one that no patch could reach or that does not fit
      the model, a source that it lacks, prompts that it cannot run, or a
      budget that not one example fits.
  """
  config = model.config
  check(bool(holds), "holds", "none", "at least one", "hold `nothing`")
  for name, hold in holds.items():
    check_hold(config, hold, f"holds[{name!r}]")
  if sources is None:
    sources = np.argwhere(np.ones((config.n_layers, config.n_heads)))
  sources = [tuple(map(int, source)) for source in sources]
  check(bool(sources), "sources", "none", "a head", "name one, or pass None")
  for source in sources:
    _check_head(config, "sources", source)
  began = time.perf_counter()
  prepared = Prepared(model, pairs, site, budget_bytes, holds=True)
  rows = prepared.plan.heads
  calls = list(held_rows.calls(sources, list(holds.values()), rows))
  effect = np.zeros((len(pairs), len(holds), len(sources)))
  base = np.zeros(len(pairs))
  bar = tqdm(
    total=len(prepared) * len(calls),
    unit="call",
    desc=f"{pairs.name}: clamping",
    disable=not progress,
  )
  with bar, jax.default_matmul_precision(PRECISION):
    for chunk in prepared:
      n = chunk.place.stop - chunk.place.start
      base[chunk.place] = np.asarray(chunk.base)[:n]
      for call in calls:
        drops = call.run(model, chunk)[:, :n]
        effect[chunk.place, call.holds, call.sources] = drops.T
        bar.update()
    provenance = results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=prepared.plan.examples * rows,
      method="clamps",
      site=site,
    )
  return _labelled(effect, base, list(holds), sources, pairs, provenance)


def check_hold(config: ModelConfig, hold: Hold, field: str) -> None:
  """Fails unless a hold fits a model and all of it can be reached.

  Args:
    config: of the model.
    hold: what is held.
    field: what an error calls it.

  Raises:
    ValueError: another shape or type, or a part that no patch changes.
  """
  reach = later_heads(config)
  if config.mlp != "none":
    reach = reach.replace(mlps=later_mlps(config).mlps)
  for name in ("heads", "mlps"):
    given, most = np.asarray(getattr(hold, name)), getattr(reach, name)
    check(
      given.shape == most.shape and given.dtype == bool,
      f"{name} of {field}",
      f"{given.dtype} of shape {given.shape}",
      f"bool of shape {most.shape}",
      "start from one of the builders",
    )
    check(
      not (given & ~most).any(),
      f"{name} of {field}",
      "a part that no patch changes",
      "heads of later layers and MLPs from the source's layer on",
      "leave it out: holding it does nothing",
    )


def _check_head(config: ModelConfig, field: str, head: Head) -> None:
  layer, index = head
  check(
    0 <= layer < config.n_layers and 0 <= index < config.n_heads,
    field,
    head,
    f"a layer below {config.n_layers} and a head below {config.n_heads}",
    "name a head that the model has",
  )


def _labelled(effect, base, names, sources, pairs, provenance) -> xr.Dataset:
  about = {"long_name": "logit difference", "units": results.LOGITS}
  drop = about | {"long_name": "logit difference, clean minus patched"}
  layers, heads = np.array(sources).T
  return xr.Dataset(
    {
      "effect": (("example", "hold", "source"), effect, drop),
      "base": ("example", base, about),
    },
    labels(pairs)
    | {
      "hold": names,
      "source_layer": ("source", layers),
      "source_head": ("source", heads),
    },
    attrs=provenance,
  )
