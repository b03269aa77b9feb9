"""Which of a layer's experts does a token use, and what do they add?

All experts are computed for every token, one expert after the other, and added
by their weights, most of which are 0. So any weights that an edit sets are
exact, every leading axis and every `vmap` is rows of the same products, and
one expert's hidden layer is in memory at a time; the price is n_experts /
experts_per_token times the multiply-adds of the chosen ones.
"""

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp

from headjax.models import sites
from headjax.models.config import ModelConfig
from headjax.models.layers import INIT, rows, wide
from headjax.models.mlp import ACTIVATIONS
from headjax.models.sites import Edits


@flax.struct.dataclass
class Routing:
  """What the router found, as sites; None without a router.

  Attributes:
    logits: `[batch, pos, expert]`, in at least float32.
    weights: `[batch, pos, expert]`, 0 for experts that are not chosen.
  """

  logits: jax.Array | None
  weights: jax.Array | None


class Experts(nn.Module):
  """Gated MLPs, of which each token uses those that its router scores best."""

  config: ModelConfig

  @nn.compact
  def __call__(
    self, x: jax.Array, edits: Edits = Edits()
  ) -> tuple[Routing, jax.Array]:
    config = self.config
    n, d_model, d_mlp = config.n_experts, config.d_model, config.d_mlp
    act = ACTIVATIONS[config.mlp]
    W_router = self.param("W_router", INIT, (d_model, n))
    W_in = self.param("W_in", INIT, (n, d_model, d_mlp))
    W_gate = self.param("W_gate", INIT, (n, d_model, d_mlp))
    write_init = nn.initializers.normal(0.02 / (2 * config.n_layers) ** 0.5)
    W_out = self.param("W_out", write_init, (n, d_mlp, d_model))
    # As in transformers: the product in the type of the stream, the rest in
    # at least float32.
    logits = rows(x, W_router).astype(wide(x.dtype))
    logits = sites.apply(edits.router_logits, logits)
    weights = choose(config, logits).astype(x.dtype)
    weights = sites.apply(edits.router_weights, weights)

    def add(total, expert):
      W_in, W_gate, W_out, weight = expert
      hidden = act(rows(x, W_gate)) * rows(x, W_in)
      return total + weight[..., None] * rows(hidden, W_out), None

    by_expert = jnp.moveaxis(weights, -1, 0)
    y, _ = jax.lax.scan(
      add, jnp.zeros_like(x), (W_in, W_gate, W_out, by_expert)
    )
    return Routing(logits, weights), y


def choose(config: ModelConfig, logits: jax.Array) -> jax.Array:
  """The weights of the best experts, 0 for the others.

  Args:
    config: of the model.
    logits: `[..., expert]`.

  Returns:
    `[..., expert]`: probabilities over all experts, which for the chosen ones
    sum to 1 only if the config says so.
  """
  probabilities = jax.nn.softmax(logits, axis=-1)
  best, index = jax.lax.top_k(probabilities, config.experts_per_token)
  if config.experts_normed:
    best = best / best.sum(-1, keepdims=True)
  chosen = jax.nn.one_hot(index, config.n_experts, dtype=best.dtype)
  return (best[..., None] * chosen).sum(-2)
