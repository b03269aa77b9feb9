"""What does a suffix sweep compute again, and what does it start from?"""

import flax.struct
import jax
import jax.numpy as jnp

from headjax.models.softmax import Context


@flax.struct.dataclass
class Window:
  """The stretch of positions that a sweep computes again, per example.

  Attributes:
    start: `[batch]` int, the first position that an edit can change.
    answer: `[batch]` int, the position that the metric reads.
    index: `[batch, window]` int, the window's positions in the padded batch.
    width: positions in the window; static.
    prefix: whether positions before `start` are read from the cache; static.
  """

  start: jax.Array
  answer: jax.Array
  index: jax.Array
  width: int = flax.struct.field(pytree_node=False)
  prefix: bool = flax.struct.field(pytree_node=False)

  def take(self, x: jax.Array) -> jax.Array:
    """The window of `[batch, pos, ...]`: `[batch, window, ...]`."""
    index = self.index.reshape(*self.index.shape, *(1,) * (x.ndim - 2))
    return jnp.take_along_axis(x, index, axis=1)

  def last(self, x: jax.Array) -> jax.Array:
    """The answer's row of a window: `[batch, 1, ...]`."""
    index = (self.answer - self.start)[:, None]
    index = index.reshape(*index.shape, *(1,) * (x.ndim - 2))
    return jnp.take_along_axis(x, index, axis=1)


@flax.struct.dataclass
class Base:
  """What all source layers of a sweep share.

  Attributes:
    resid_pre, written: `[layer, batch, window, d_model]`, clean: the stream,
      and the sum of the heads' writes.
    dz: `[layer, batch, window, head, d_head]`, edited minus clean output.
    k: `[layer, batch, pos, head, d_key]`, clean, turned to their positions.
    v: `[layer, batch, pos, head, d_head]`, clean, as they enter the mixture.
    context: `[batch, pos]`, where the cached keys stand.
    window: the positions to compute.
    z: `[layer, batch, window, head, d_head]`, clean, and
    mlp_out: `[layer, batch, window, d_model]`, likewise, to hold parts of the
      model at; None where nothing is to be held.
  """

  resid_pre: jax.Array
  written: jax.Array
  dz: jax.Array
  k: jax.Array
  v: jax.Array
  context: Context
  window: Window
  z: jax.Array | None = None
  mlp_out: jax.Array | None = None
