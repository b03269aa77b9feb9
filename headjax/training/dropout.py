"""What does dropout leave out? A random share of what is added to the stream.

It is an edit like any other: in a training step every value of what attention
and MLPs add to the stream is 0 with the probability `rate`, and else grows, so
that the mean stays. Attention patterns and what is inside an MLP stay whole.

Source: Srivastava et al. 2014; where it acts, the dropouts before the additions
  in Vaswani et al. 2017, section 5.4.
"""

import jax
import jax.numpy as jnp

from headjax.models.config import ModelConfig
from headjax.models.sites import Edit, Edits


def dropout(
  config: ModelConfig, key: jax.Array, n_rows: int, rate: float
) -> Edits:
  """The edits of one step; none at rate 0.

  Args:
    config: of the model.
    key: of the draws.
    n_rows: sequences of the step, of `config.n_ctx` tokens each.
    rate: share that is left out, below 1; static.
  """
  if not rate:
    return Edits()
  shape = (config.n_layers, n_rows, config.n_ctx, config.d_model)
  nothing = jnp.zeros((config.n_layers, 1, 1, 1))

  def one(key):
    scale = jax.random.bernoulli(key, 1 - rate, shape) / (1 - rate)
    return (Edit(1 - scale, nothing),)

  attention, mlp = jax.random.split(key)
  return Edits(attn_out=one(attention), mlp_out=one(mlp))
