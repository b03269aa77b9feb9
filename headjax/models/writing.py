"""What do heads add to the stream? The same for every kind of attention."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from headjax.geometry.designs import Rotation
from headjax.models.config import ModelConfig
from headjax.models.layers import rows, shift


class Writing(nn.Module):
  """Heads with learned or designed writes; the base of all attention."""

  config: ModelConfig

  def set_up_write(self, deviation: float):
    """W_O, if it is learned, at that standard deviation; the bias."""
    config = self.config
    if not config.write.frozen:
      init = nn.initializers.normal(deviation)
      shape = (config.n_heads, config.d_head, config.d_model)
      self.W_O = self.param("W_O", init, shape)
    if config.out_bias:
      self.b_O = self.param("b_O", nn.initializers.zeros, (config.d_model,))

  def write(self, z: jax.Array, rotation: Rotation | None) -> jax.Array:
    """`[batch, pos, d_model]`: the sum of the heads' writes, and the bias."""
    if self.config.write.frozen:
      y = self.config.write.apply(z, rotation)
    else:
      flat = z.reshape(*z.shape[:-2], -1)
      y = rows(flat, self.W_O.reshape(-1, self.config.d_model))
    return shift(y, self.b_O) if self.config.out_bias else y

  def write_per_head(
    self, z: jax.Array, heads: jax.Array, rotation: Rotation | None
  ) -> jax.Array:
    """`[n, batch, pos, d_model]`: the writes of some heads, without bias.

    Args:
      z: `[batch, pos, n, d_head]`, of the heads asked for.
      heads: `[n]` their indices.
      rotation: of this layer, if its writes are rotated.
    """
    if not self.config.write.frozen:
      return jnp.einsum("bpne,ned->nbpd", z, self.W_O[heads].astype(z.dtype))
    placed = jax.nn.one_hot(heads, self.config.n_heads, dtype=z.dtype)
    alone = jnp.einsum("bpne,nh->nbphe", z, placed)
    return self.config.write.apply(alone, rotation)
