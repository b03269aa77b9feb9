"""What does every edit do? Two ways to the same numbers.

`general_sweep` runs the whole forward once per gate, under `vmap`: any site,
any edit. It is the definition. `suffix_sweep` computes the same effects for
edits inside one layer's heads from the source layer and the first changed
position on (`headjax.interventions.suffix`). Both return clean minus edited,
so that a positive effect means that what was edited away had helped.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check
from headjax.interventions import chunks, suffix
from headjax.interventions.observing import Observe
from headjax.interventions.record import Run
from headjax.interventions.rerun import Hold
from headjax.models.compiling import fast_jit
from headjax.models.decoder import Decoder, run
from headjax.models.sites import Edit, Edits, LinearEdit

Metric = Callable[[Decoder, Any, jax.Array], jax.Array]
PRECISION = "highest"
N_CALLS = 4  # of the compiled suffix sweep per chunk: steps of the progress


class Sweep(NamedTuple):
  """The outcome of a sweep, on the host.

  Attributes:
    effect: `[..., batch]`, metric of the clean run minus that of the edited.
    base: `[batch]`, metric of the clean run.
    observed: what was watched, `[source_layer, source_head, layer, ...]`, if
      anything was.
  """

  effect: np.ndarray
  base: np.ndarray
  observed: Any = None


def at_answer(resid: jax.Array, answer: jax.Array) -> jax.Array:
  """The stream at each example's answer position.

  Args:
    resid: `[batch, pos, d_model]`.
    answer: `[batch]` int.

  Returns:
    `[batch, d_model]`.
  """
  return jnp.take_along_axis(resid, answer[:, None, None], axis=1)[:, 0]


def general_sweep(
  model: Decoder,
  params: Any,
  tokens: jax.Array,
  edits: Edits,
  metric: Metric,
  *,
  answer: jax.Array,
  key_valid: jax.Array | None = None,
  rows: int = 16,
  progress: Callable[[int], Any] | None = None,
) -> Sweep:
  """Runs the model once per gate, `rows` gates at a time.

  Args:
    model: the `Decoder`.
    params: its parameters.
    tokens: `[batch, pos]`.
    edits: whose gates have a leading sweep axis `n` before the layer axis;
      values and matrices have none and are shared.
    metric: from `headjax.interventions.metrics`.
    answer: `[batch]` int, the position that the metric reads.
    key_valid: `[batch, pos]` bool, False where a token is padding.
    rows: gates per call. The clean run is one more row of the same batch, so
      a closed gate has an effect of exactly 0.
    progress: called with the number of gates done.

  Returns:
    `effect[n, batch]` and `base[batch]`.
  """
  n = _sweep_length(edits)
  rows = min(rows, n)
  effects, base = [], None
  with jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(n, rows):
      take = functools.partial(_with_closed, index=index)
      chunk = _map_gates(take, edits)
      values = np.asarray(
        _general_rows(model, params, tokens, chunk, metric, answer, key_valid)
      )
      base = values[0] if base is None else base
      effects.append((values[:1] - values[1:])[: place.stop - place.start])
      if progress:
        progress(len(effects[-1]))
  return Sweep(np.concatenate(effects), base)


@functools.partial(fast_jit, static_argnames=("model",))
def _general_rows(model, params, tokens, edits, metric, answer, key_valid):
  def one(edits):
    resid, _ = run(model, params, tokens, edits, key_valid=key_valid)
    return metric(model, params, at_answer(resid, answer))

  return jax.vmap(one, in_axes=(_in_axes(edits),))(edits)


def _with_closed(gate, index):
  return jnp.concatenate([jnp.zeros_like(gate[:1]), gate[index]])


def _sweep_length(edits: Edits) -> int:
  lengths = {gate.shape[0] for gate in jax.tree.leaves(_gates(edits))}
  check(
    len(lengths) == 1 and 0 not in lengths,
    "edits",
    f"gates for {sorted(lengths) or 'no'} items",
    "gates [n, layer, ...] with one n of at least 1",
    "give every gate the same leading sweep axis",
  )
  return lengths.pop()


def _is_edit(node) -> bool:
  return isinstance(node, Edit | LinearEdit)


def _map_gates(f, edits: Edits) -> Edits:
  return jax.tree.map(
    lambda e: e.replace(gate=f(e.gate)), edits, is_leaf=_is_edit
  )


def _gates(edits: Edits):
  return jax.tree.map(lambda e: e.gate, edits, is_leaf=_is_edit)


def _in_axes(edits: Edits):
  """Only gates are mapped, never values."""

  def axes(edit):
    shared = {"value": None} if isinstance(edit, Edit) else {"matrix": None}
    return edit.replace(gate=0, **shared)

  return jax.tree.map(axes, edits, is_leaf=_is_edit)


def suffix_sweep(
  model: Decoder,
  params: Any,
  clean: Run,
  z_alt: jax.Array,
  metric: Metric,
  *,
  start: np.ndarray,
  answer: np.ndarray,
  hold: Hold | None = None,
  observe: Observe | None = None,
  heads: int | None = None,
  progress: Callable[[int], Any] | None = None,
) -> Sweep:
  """Replaces each head's output alone, computing only what can change.

  Args:
    model: the `Decoder`.
    params: its parameters.
    clean: the recorded run that is edited.
    z_alt: `[layer, batch, pos, head, d_head]`, from `alternative_z`.
    metric: from `headjax.interventions.metrics`.
    start: `[batch]` int, the first position where `z_alt` may differ.
    answer: `[batch]` int, the position that the metric reads.
    hold: what is kept at its clean value, for each head other parts.
    observe: what to watch in the later layers, from
      `headjax.interventions.observing`.
    heads: source heads per call; default all of a layer.
    progress: called with the number of (layer, head) sites done.

  Returns:
    `effect[layer, head, batch]` and `base[batch]`. Where the edit leaves the
    head's output as it was, the effect is exactly 0.
  """
  n_pos = clean.resid.shape[1]
  window = suffix.make_window(model.config, start, answer, n_pos)
  with jax.default_matmul_precision(PRECISION):
    shared = _prepare(model, params, clean, z_alt, window, hold is not None)
    base = _metric_at(model, params, clean.resid, metric, window.answer)
  return sweep_layers(
      model, params, shared, metric, base,
      hold=hold, observe=observe, heads=heads, progress=progress,
  )  # fmt: skip


@functools.partial(jax.jit, static_argnames=("model", "holds"))
def _prepare(model, params, clean, z_alt, window, holds=False):
  return suffix.prepare(model, params, clean, z_alt, window, holds)


@functools.partial(jax.jit, static_argnames=("model",))
def _metric_at(model, params, resid, metric, answer):
  return metric(model, params, at_answer(resid, answer))


def sweep_layers(
  model: Decoder,
  params: Any,
  shared: suffix.Base,
  metric: Metric,
  base: jax.Array,
  *,
  hold: Hold | None = None,
  observe: Observe | None = None,
  heads: int | None = None,
  progress: Callable[[int], Any] | None = None,
) -> Sweep:
  """The suffix sweep of a prepared batch: a few layers, some heads a call.

  Layers and heads are arguments of one compiled program, so that a long sweep
  can show its progress and be interrupted. Arguments as in `suffix_sweep`;
  `shared` is from `suffix.prepare`, `base` the metric of the clean run.
  """
  n_layers, n_heads = model.config.n_layers, model.config.n_heads
  some_heads = min(heads or n_heads, n_heads)
  parts = []
  with jax.default_matmul_precision(PRECISION):
    for layers, _ in chunks.slices(n_layers, -(-n_layers // N_CALLS)):
      for some, _ in chunks.slices(n_heads, some_heads):
        found = _suffix_rows(
          model, params, shared, metric, base, layers, some, hold, observe
        )
        parts.append((np.ix_(layers, some), jax.device_get(found)))
        if progress:
          progress(len(set(layers)) * len(set(some)))
  effect, observed = _whole(n_layers, n_heads, parts)
  return Sweep(effect, np.asarray(base), observed)


def _whole(n_layers: int, n_heads: int, parts: list) -> Any:
  """`[layer, head, ...]` arrays from those of some layers and heads."""

  def of_leaf(*found):
    whole = np.zeros((n_layers, n_heads, *found[0].shape[2:]), found[0].dtype)
    for (place, _), part in zip(parts, found, strict=True):
      whole[place] = part  # repeats write the same values again
    return whole

  return jax.tree.map(of_leaf, *(found for _, found in parts))


@functools.partial(fast_jit, static_argnames=("model",))
def _suffix_rows(
    model, params, shared, metric, base, layers, heads, hold=None, observe=None
):  # fmt: skip
  """`[layer, head, batch]` effects of some layers, one after the other."""

  def one(layer):
    rows = jax.tree.map(lambda x: jnp.asarray(x)[layer][heads], hold)
    resid, changed, seen = suffix.observe_layer(
      model, params, shared, layer, heads, rows, observe
    )
    return drop(model, params, metric, base, resid, changed), seen

  return jax.lax.map(one, layers)


def drop(
  model: Decoder,
  params: Any,
  metric: Metric,
  base: jax.Array,
  resid: jax.Array,
  changed: jax.Array,
) -> jax.Array:
  """`[n, batch]`: how much less than `base` the metric is for edited rows.

  An output that the edit left as it was is the clean run: its effect is 0, not
  the rounding between two programs.
  """
  edited = jax.vmap(functools.partial(metric, model, params))(resid)
  return jnp.where(changed, base[None] - edited, 0)
