"""What do heads see of the stream? The norms and blocks before q, k and v."""

import flax.linen as nn
import flax.struct
import jax

from headjax.geometry.designs import Rotation
from headjax.models.config import ModelConfig
from headjax.models.layers import Norm


@flax.struct.dataclass
class Reads:
  """The normalised stream as the heads see it.

  Attributes:
    whole: `[batch, pos, d_model]`, for inputs that read all of it, else None.
    blocks: `[batch, pos, head, d_head]`, for inputs that read one block a
      head, else None.
  """

  whole: jax.Array | None
  blocks: jax.Array | None


class Reader(nn.Module):
  """Norms in the way that the read design wants them."""

  config: ModelConfig

  def setup(self):
    read = self.config.read
    if read.whole and self.config.norms_input:
      self.norm = Norm(self.config)
    if read.kind != "free":
      self.block_norm = Norm(self.config, n_axes=2)

  def __call__(self, resid: jax.Array, rotation: Rotation | None) -> Reads:
    read, d_head = self.config.read, self.config.d_head
    whole = None
    if read.whole:
      whole = self.norm(resid) if self.config.norms_input else resid
    if read.kind == "free":
      return Reads(whole, None)
    blocks = self.block_norm(read.apply(resid, rotation, d_head))
    if read.kind == "block_norm":
      return Reads(blocks.reshape(resid.shape), None)
    return Reads(whole, blocks)
