"""The MLP of a block: one hidden layer, plain or gated."""

import functools

import flax.linen as nn
import jax

from headjax.models.config import ModelConfig
from headjax.models.layers import INIT, rows, shift

ACTIVATIONS = {
  "geglu": functools.partial(jax.nn.gelu, approximate=True),
  "gelu": functools.partial(jax.nn.gelu, approximate=False),
  "gelu_tanh": functools.partial(jax.nn.gelu, approximate=True),
  "relu": jax.nn.relu,
  "swiglu": jax.nn.silu,
}


class MLP(nn.Module):
  """`W_out act(W_in x)`, or `W_out (act(W_gate x) * W_in x)` when gated."""

  config: ModelConfig

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    config = self.config
    d_model, d_mlp = config.d_model, config.d_mlp
    into, out = (d_model, d_mlp), (d_mlp, d_model)
    zeros = nn.initializers.zeros
    act = ACTIVATIONS[config.mlp]
    hidden = rows(x, self.param("W_in", INIT, into))
    if config.mlp_bias:
      hidden = shift(hidden, self.param("b_in", zeros, (d_mlp,)))
    if config.gated:
      gate = rows(x, self.param("W_gate", INIT, into))
      if config.mlp_bias:
        gate = shift(gate, self.param("b_gate", zeros, (d_mlp,)))
      hidden = hidden * act(gate)
    else:
      hidden = act(hidden)
    # GPT-2's rule: what is written to the residual starts smaller, so that
    # its variance does not grow with depth.
    write_init = nn.initializers.normal(0.02 / (2 * config.n_layers) ** 0.5)
    y = rows(hidden, self.param("W_out", write_init, out))
    if config.mlp_bias:
      y = shift(y, self.param("b_out", zeros, (d_model,)))
    return y
