"""How much does each head matter, at the least cost? The suffix sweep.

Whatever is edited inside a layer's heads, a head's output becomes some other
`z`. Before that layer nothing changes, and in a causal model nothing changes
at positions before the first edited one. So for a head of layer l only layers
l, l+1, ... and the window of positions from the first edit to the answer are
computed; earlier positions are read from the clean run's keys and values. All
heads of a layer are rows of one batch, the layer is an argument, and one
compiled program serves every layer, head, prompt and window start.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headjax.interventions.observing import Observe, Watch
from headjax.interventions.record import Run, cached_keys
from headjax.interventions.rerun import Hold, Layers
from headjax.interventions.window import Base, Window
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder


def make_window(
  config: ModelConfig,
  start: np.ndarray,
  answer: np.ndarray,
  n_pos: int,
  width: int | None = None,
) -> Window:
  """The smallest window that holds every example's edits and answer.

  Without causality, an edit anywhere changes every position, so the window
  is the whole sequence.

  Args:
    config: says whether attention is causal.
    start: `[example]` first position that the edit can change.
    answer: `[example]` position of the metric, not before `start`.
    n_pos: positions in the padded batch.
    width: at least the default; a common one lets chunks share a program.
  """
  width = width or int((answer - start).max()) + 1
  if not config.causal or width == n_pos:
    start, width = np.zeros_like(start), n_pos
  index = np.minimum(start[:, None] + np.arange(width), n_pos - 1)
  return Window(
    jnp.asarray(start, jnp.int32),
    jnp.asarray(answer, jnp.int32),
    jnp.asarray(index, jnp.int32),
    width,
    width < n_pos,
  )


def prepare(
  model: Decoder,
  params: Any,
  clean: Run,
  z_alt: jax.Array,
  window: Window,
  holds: bool = False,
) -> Base:
  """Cuts the window out of the clean run; traceable.

  Args:
    model: the `Decoder`.
    params: its parameters.
    clean: the run that is edited.
    z_alt: `[layer, batch, pos, head, d_head]`, from `alternative_z`.
    window: from `make_window`.
    holds: whether anything will be held at its clean value.
  """
  take = jax.vmap(window.take)
  cached = cached_keys(model, params, clean)
  dz = take(z_alt - clean.z)
  held = (take(clean.z), take(clean.mlp_out)) if holds else ()
  return Base(
      take(clean.resid_pre), take(clean.written), dz, cached.k, cached.v,
    cached.context,
      window, *held,
  )  # fmt: skip


def sweep_layer(
  model: Decoder,
  params: Any,
  base: Base,
  layer: jax.Array,
  heads: jax.Array,
  hold: Hold | None = None,
) -> tuple[jax.Array, jax.Array]:
  """Edits some heads of one layer, each alone; traceable.

  Args:
    model: the `Decoder`; static.
    params: its parameters.
    base: from `prepare`.
    layer: scalar int, the source layer.
    heads: `[n]` int, the source heads; a head may come several times.
    hold: what each of these rows keeps clean, `[n, layer, ...]`.

  Returns:
    The final stream at the answer, `[n, batch, d_model]`, and whether the
    edit changed the head's output at all, `[n, batch]` bool.
  """
  return observe_layer(model, params, base, layer, heads, hold)[:2]


def observe_layer(
  model: Decoder,
  params: Any,
  base: Base,
  layer: jax.Array,
  heads: jax.Array,
  hold: Hold | None = None,
  observe: Observe | None = None,
) -> tuple[jax.Array, jax.Array, Any]:
  """The same as `sweep_layer`, with a look at every later layer.

  Returns:
    Besides, what `observe` makes of them, `[n, layer, ...]`: 0 up to the
    source layer.
  """
  last_layer = model.config.n_layers - 1
  here = Layers(model, params, base)
  dz = here.at(base.dz, layer)[:, :, heads]
  changed = ((dz != 0) & here.seen[:, :, None, None]).any(axis=(1, 3)).T
  see = nothing = None
  if observe is not None:
    arrived = here.arrived(layer, heads, dz)
    watch = Watch(observe, here, arrived, changed)
    see, nothing = watch.add, watch.nothing(arrived, model.config.n_layers)

  def from_last_layer():
    return here.start(layer, heads, dz, base.window.last, hold), nothing

  def whole(later, state):
    rows, seen = state
    seen = see(later, rows, seen) if see else None
    return here.whole(later, rows, hold), seen

  def from_earlier_layer():
    rows = here.start(layer, heads, dz, lambda x: x, hold)
    rows, seen = jax.lax.fori_loop(
      layer + 1, last_layer, whole, (rows, nothing)
    )
    seen = see(last_layer, rows, seen) if see else None
    return here.ending(last_layer, rows, hold), seen

  rows, seen = jax.lax.cond(
    layer == last_layer, from_last_layer, from_earlier_layer
  )
  return rows[:, :, 0], changed, seen
