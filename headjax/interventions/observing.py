"""What may one watch in the later layers while a head is patched?

A sweep's `observe(layer, patched, clean) -> pytree` is called at every layer
after the source, for one edited head, and itself sums over examples and
positions. It is a pytree like a metric, so that what it needs is data, and
whatever it does not ask for is never computed.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

from headjax.interventions.rerun import Layers


@flax.struct.dataclass
class Patched:
  """The stream that a later layer reads in the patched run.

  Attributes:
    total: `[batch, window, d_model]`, as everything in between has answered.
    direct: `[batch, window, d_model]`, the clean one plus only what the patch
      itself adds (behind a norm of the attention output, if there is one).
    changed: `[batch]` bool, whether the patch changed the head's output.
  """

  total: jax.Array
  direct: jax.Array
  changed: jax.Array


@dataclasses.dataclass(frozen=True)
class Layer:
  """What can be asked of the layer that is watched.

  Attributes:
    here: the block's halves.
    index: scalar int, which layer.
  """

  here: Layers
  index: jax.Array

  @property
  def seen(self) -> jax.Array:
    """`[batch, window]` bool: whether the answer can depend on a position."""
    return self.here.seen

  def inputs(self, resid: jax.Array) -> dict[str, jax.Array]:
    """What the heads read: letter -> `[batch, window, head, width]`.

    The maps of the normalised stream, before biases, q/k norms and limits.
    """
    return self.here.inputs(self.index, resid)

  def pattern(self, asking: jax.Array, asked: jax.Array) -> jax.Array:
    """`[batch, head, key]`: the attention at the answer.

    Args:
      asking: `[batch, window, d_model]`, the stream that the query is of.
      asked: `[batch, window, d_model]`, that of the keys in the window; those
        before it are clean.
    """
    answer = self.here.base.window.last(asking)
    return self.here.asked(self.index, answer, asked).pattern[:, :, 0]


Observe = Callable[[Layer, Patched, jax.Array], Any]


class Watch:
  """Keeps what `observe` sees in each later layer, for rows of edited heads."""

  def __init__(self, observe: Observe, here: Layers, arrived, changed):
    """Takes what the rows start from.

    Args:
      observe: see above.
      here: the block's halves.
      arrived: `[n, batch, window, d_model]`, what each edit adds.
      changed: `[n, batch]` bool, whether it changes anything.
    """
    self.observe, self.here = observe, here
    self.arrived, self.changed = arrived, changed

  def nothing(self, rows: jax.Array, n_layers: int) -> Any:
    """Zeros `[n, layer, ...]` for what there will be to see."""
    found = jax.eval_shape(self._found, jnp.int32(0), rows)
    return jax.tree.map(
      lambda x: jnp.zeros((len(rows), n_layers, *x.shape[1:]), x.dtype), found
    )

  def add(self, layer: jax.Array, rows: jax.Array, seen: Any) -> Any:
    """`seen` with a layer filled in, before it runs on `rows`."""
    found = self._found(layer, rows)
    return jax.tree.map(lambda x, new: x.at[:, layer].set(new), seen, found)

  def _found(self, layer, rows):
    clean = self.here.at(self.here.base.resid_pre, layer)

    def one(total, arrived, changed):
      patched = Patched(total, clean + arrived, changed)
      return self.observe(Layer(self.here, layer), patched, clean)

    return jax.vmap(one)(rows, self.arrived, self.changed)
