"""What is answered without a group of heads? Each group from its first layer.

Before the first layer of a group nothing changes: its run starts from the
stream that one recorded forward left there. The first layer and the heads are
arguments of one compiled program, and the last layer computes the query alone,
so that a sweep costs little more than the layers that it must run again.
"""

import functools
import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from headjax import results
from headjax.checks import check
from headjax.data.probes import Probe
from headjax.interventions import chunks
from headjax.interventions.kept_groups import KeptGroups
from headjax.interventions.query_rows import examples_at_once
from headjax.interventions.sweep import PRECISION
from headjax.models import weights
from headjax.models.block import Block, layer_statics
from headjax.models.compiling import fast_jit
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder, unembed
from headjax.models.layers import wide
from headjax.models.layerwise import scan_layers
from headjax.models.load import LoadedModel
from headjax.models.prompts import check_prompts, padded_context
from headjax.models.sites import Edit, Edits
from headjax.models.softmax import Context
from headjax.outline import of_fields, table_of_fields


@flax.struct.dataclass
class Start:
  """What all groups of a chunk share.

  Attributes:
    resid_pre: `[layer, batch, pos, d_model]`, of the whole model.
    context: where the rows stand.
    query: `[batch]` positions.
    answer, foil: `[batch]` tokens.
  """

  resid_pre: jax.Array
  context: Context
  query: jax.Array
  answer: jax.Array
  foil: jax.Array

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def ablate_groups(
  model: LoadedModel,
  probe: Probe,
  groups: np.ndarray,
  *,
  budget_bytes: int = 2 * chunks.GIB,
  folder: str | os.PathLike | None = None,
  progress: bool = False,
) -> xr.Dataset:
  """The answers without each group, whose outputs are 0 at every position.

  Args:
    model: from `load_model`.
    probe: rows with a query each.
    groups: `[group, layer, head]` bool; an empty group changes nothing. Equal
      groups are run once.
    budget_bytes: memory per device, beside the parameters.
    folder: where groups are kept as they are done, so that an interrupted call
      goes on where it stopped, to the same bits; None: nowhere.
    progress: whether to show a progress bar.

  Returns:
    A dataset with, of each `[example, group]`: `loss` (nats), `logit` of the
    answer, `difference` of the answer's and the foil's, and `rank` of the
    answer, 0 for the first; and the same of the whole model, `base_loss`, ...,
    `[example]`. `members[group, layer, head]` says which heads are gone.
    Without foils the differences are 0.

  Raises:
    ValueError: groups that do not fit the model, rows that it cannot run, a
      budget that not one fits, or logits that are not finite.

  Source: paper B, step 3.
  """
  config = model.config
  groups = _checked(config, groups)
  tokens, lengths = check_prompts(config, probe.tokens, probe.lengths)
  # The first group is empty: the base runs through the same program.
  whole = np.concatenate([np.zeros_like(groups[:1]), groups])
  distinct, back = np.unique(whole, axis=0, return_inverse=True)
  began = time.perf_counter()
  n_devices = min(jax.local_device_count(), len(probe))
  n_numbers = _numbers(config, tokens.shape[1])
  size = examples_at_once(model, tokens.shape, n_numbers, budget_bytes)
  params = chunks.replicate(model.params, n_devices)
  foil = probe.answer if probe.foil is None else probe.foil
  data = tuple(
    np.asarray(x, np.int32) for x in (tokens, lengths, probe.answer, foil)
  )
  found = np.zeros((len(_MEASURES), len(distinct), len(probe)))
  bar = _bar(config, probe, distinct, size, progress)
  with bar, jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(probe), size):
      kept = KeptGroups(folder, _measured_with(model, probe, index))
      inputs = chunks.spread(tuple(x[index] for x in data), n_devices)
      for i, values in enumerate(
        _values(model.model, params, inputs, distinct, kept, bar)
      ):
        found[:, i, place] = values[:, : place.stop - place.start]
    provenance = results.provenance(
      model=model,
      pairs=probe,
      wall_s=time.perf_counter() - began,
      chunk=size,
      method="group ablations",
      site="z",
      position="all",
      ablation="zero",
      distinct_groups=len(distinct),
      chance=probe.chance,
    )
  return _labelled(found[:, back.ravel()], groups, provenance)


def first_layer(group: np.ndarray) -> int:
  """The first layer of a group; of an empty one, the last of the model.

  Args:
    group: `[layer, head]` bool.
  """
  layers = np.flatnonzero(group.any(-1))
  return int(layers[0]) if len(layers) else len(group) - 1


_MEASURES = {
  "loss": "nats",
  "logit": results.LOGITS,
  "difference": results.LOGITS,
  "rank": "1",
}


def _bar(config, probe, groups, size, progress) -> tqdm:
  """Counts layers, of which groups need different numbers."""
  whole = config.n_layers + sum(_n_layers(group) for group in groups)
  return tqdm(
    total=-(-len(probe) // size) * whole,
    unit="layer",
    desc=f"{probe.name}: ablating {len(groups)} groups",
    disable=not progress,
  )


def _n_layers(group) -> int:
  return len(group) - first_layer(group)


def _measured_with(model: LoadedModel, probe: Probe, index) -> dict[str, Any]:
  """All that the values of a chunk depend on to the last bit."""
  return {
    "weights": model.digest,
    "config": repr(model.config),
    "dtype": str(jax.tree.leaves(model.params)[0].dtype),
    "rows": probe.select(index).digest,
    "precision": PRECISION,
    "devices": f"{jax.local_device_count()} {jax.devices()[0].device_kind}",
    "jax": jax.__version__,
  }


def _values(
  model: Decoder, params: Any, inputs, groups, kept: KeptGroups, bar: tqdm
) -> list[np.ndarray]:
  """`[measure, batch]` of each group; those that are kept are not run."""
  left = [group for group in groups if kept.get(group) is None]
  # What is kept takes no time, so that it is not part of the time left.
  bar.total -= sum(map(_n_layers, groups)) - sum(map(_n_layers, left))
  if not left:
    bar.total -= model.config.n_layers
    return [kept.get(group) for group in groups]
  start = _start(model, params, *inputs)
  bar.update(model.config.n_layers)
  running = (
    (group, _without(model, params, start, first_layer(group), group))
    for group in left
  )
  done = len(groups) - len(left)
  try:
    for group, values in _ahead(running):
      kept.add(group, np.asarray(values))
      done += 1
      bar.set_postfix_str(f"{done} of these rows", refresh=False)
      bar.update(_n_layers(group))
  finally:
    kept.write()
  return [kept.get(group) for group in groups]


def _ahead(items: Iterable) -> Iterator:
  """Each item when the next one has begun: the device never waits."""
  items = iter(items)
  before = next(items, None)
  while before is not None:
    after = next(items, None)
    yield before
    before = after


@functools.partial(fast_jit, static_argnames=("model",))
def _start(model: Decoder, params: Any, tokens, lengths, answer, foil) -> Start:
  """The stream before every layer."""
  context = padded_context(tokens, lengths)
  # The last layer's own output is not needed, and XLA leaves it out.
  resid_pre = scan_layers(
    model, params, tokens, context, lambda _, acts: acts.resid_pre
  )[1]
  return Start(resid_pre, context, lengths - 1, answer, foil)


@functools.partial(fast_jit, static_argnames=("model",))
def _without(model: Decoder, params: Any, start: Start, first, group):
  """`[measure, batch]` without a group whose first layer is `first`."""
  config = model.config
  block, last = Block(config), config.n_layers - 1
  stacked = (weights.blocks(params), layer_statics(config))
  gates = jnp.asarray(group)[:, None, None, :, None]

  def at(tree, layer):
    return jax.tree.map(
      lambda x: jax.lax.dynamic_index_in_dim(x, layer, keepdims=False), tree
    )

  def rest(layer, resid, read=None, asking=None):
    params, statics = at(stacked, layer)
    call = functools.partial(block.apply, {"params": params})
    gone = Edit(at(gates, layer), jnp.zeros((1, 1, 1, 1)))
    heads = call(
      statics, resid if read is None else read, start.context,
      asking=asking, edits=Edits(z=(gone,)), method=Block.attend,
    )  # fmt: skip
    written = call(statics, heads.z, method=Block.write)
    return call(resid, written, method=Block.finish).resid_post

  stream = at(start.resid_pre, first)
  stream = jax.lax.fori_loop(first, last, rest, stream)

  def asked(x):
    index = start.query.reshape(-1, *(1,) * (x.ndim - 1))
    return jnp.take_along_axis(x, index, axis=1)

  place = Context(
    asked(start.context.positions), asked(start.context.key_valid)
  )
  row = asked(stream)
  row = rest(last, row, read=stream, asking=(row, place))[:, 0]
  return _measured(unembed(model, params, row), start.answer, start.foil)


def _measured(logits, answer, foil):
  """`[measure, batch]`, in the order of `_MEASURES`."""
  logits = logits.astype(wide(logits.dtype))
  mine, other = (
    jnp.take_along_axis(logits, token[:, None], axis=-1)
    for token in (answer, foil)
  )
  loss = jax.nn.logsumexp(logits, axis=-1) - mine[:, 0]
  # As of argmax: of equal logits the one of the smaller id comes first.
  ids = jnp.arange(logits.shape[-1])[None]
  ahead = (logits > mine) | ((logits == mine) & (ids < answer[:, None]))
  rank = ahead.sum(-1).astype(logits.dtype)
  return jnp.stack([loss, mine[:, 0], (mine - other)[:, 0], rank])


def _numbers(config: ModelConfig, n_pos: int) -> int:
  """Numbers that a row needs: the streams, one layer, and the vocabulary."""
  heads = config.n_heads * config.d_head
  layer = 3 * config.n_heads * n_pos + 4 * heads + 4 * config.d_model
  layer += (3 if config.gated else 2) * config.d_mlp + 3 * config.n_experts
  return n_pos * (layer + config.n_layers * config.d_model) + 4 * config.d_vocab


def _checked(config: ModelConfig, groups) -> np.ndarray:
  groups, heads = np.asarray(groups), (config.n_layers, config.n_heads)
  check(
    groups.dtype == bool
    and groups.ndim == 3
    and groups.shape[1:] == heads
    and len(groups) >= 1,
    "groups",
    f"{groups.dtype} of shape {groups.shape}",
    f"bool [group, {heads[0]}, {heads[1]}], at least one group",
    "mark the heads of each group",
  )
  return groups


def _labelled(found, groups, provenance) -> xr.Dataset:
  """The measures with their names, the base's apart."""
  check(
    bool(np.isfinite(found).all()),
    "logits",
    "numbers that are not finite",
    "finite ones",
    "run the model in float32",
  )
  arrays = {}
  for (name, units), values in zip(_MEASURES.items(), found, strict=True):
    values = values.astype(np.int32) if name == "rank" else values
    about = {"units": units}
    arrays[name] = (("example", "group"), values[1:].T, about)
    arrays[f"base_{name}"] = ("example", values[0], about)
  members = (("group", "layer", "head"), groups.astype(np.int8))
  return xr.Dataset(arrays | {"members": members}, attrs=provenance)
