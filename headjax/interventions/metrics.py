"""What number does an intervention change? One value per example, in nats.

A metric is a small pytree whose arrays have a leading example axis, so chunks
and shards of examples are slices of it. It is called inside the compiled
sweep on the final stream at the answer position and unembeds no more than it
needs.
"""

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

from headjax.models.decoder import Decoder, unembed, unembed_tokens
from headjax.models.layers import wide


@flax.struct.dataclass
class LogitDifference:
  """logit(answer) - logit(foil); unembeds two tokens.

  Attributes:
    answer: `[example]` int.
    foil: `[example]` int.
  """

  answer: jax.Array
  foil: jax.Array

  def __call__(self, model: Decoder, params: Any, resid: jax.Array):
    """`[example]` of the stream `[example, d_model]`."""
    both = jnp.stack([self.answer, self.foil])
    twice = jnp.broadcast_to(resid, (2, *resid.shape))
    answer, foil = unembed_tokens(model, params, twice, both)
    return answer - foil


@flax.struct.dataclass
class LogProbability:
  """log p(answer); unembeds the whole vocabulary at one position.

  Attributes:
    answer: `[example]` int.
  """

  answer: jax.Array

  def __call__(self, model: Decoder, params: Any, resid: jax.Array):
    """`[example]` of the stream `[example, d_model]`."""
    log_p = _log_probabilities(model, params, resid)
    return jnp.take_along_axis(log_p, self.answer[:, None], axis=-1)[:, 0]


@flax.struct.dataclass
class NegativeKL:
  """-KL(clean || patched) over the whole vocabulary; 0 for the clean run.

  Negative, so that the effect, clean minus patched, is the divergence itself.

  Attributes:
    clean: `[example, d_model]`, the clean run's final stream at the answer.
  """

  clean: jax.Array

  def __call__(self, model: Decoder, params: Any, resid: jax.Array):
    """`[example]` of the stream `[example, d_model]`."""
    log_p = _log_probabilities(model, params, self.clean)
    log_q = _log_probabilities(model, params, resid)
    # The terms sum to the divergence, and none is negative: the rounding of
    # the logits enters squared, so that small divergences keep their order.
    p, gain = jnp.exp(log_p), log_q - log_p
    series = (
      p * gain**2 * (1 / 2 + gain * (1 / 6 + gain * (1 / 24 + gain / 120)))
    )
    terms = jnp.exp(log_q) - p - p * gain
    return -jnp.where(jnp.abs(gain) < 0.01, series, terms).sum(-1)


def _log_probabilities(model, params, resid):
  logits = unembed(model, params, resid)
  return jax.nn.log_softmax(logits.astype(wide(logits.dtype)), axis=-1)
