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
from headjax.outline import of_fields, table_of_fields


@flax.struct.dataclass
class LogitDifference:
  """logit(answer) - logit(foil); unembeds two tokens.

  Attributes:
    answer: `[example]` int.
    foil: `[example]` int.
  """

  answer: jax.Array
  foil: jax.Array

  __repr__ = of_fields
  _repr_html_ = table_of_fields

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

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def __call__(self, model: Decoder, params: Any, resid: jax.Array):
    """`[example]` of the stream `[example, d_model]`."""
    log_p = _log_probabilities(model, params, resid)
    return jnp.take_along_axis(log_p, self.answer[:, None], axis=-1)[:, 0]


def _log_probabilities(model, params, resid):
  logits = unembed(model, params, resid)
  return jax.nn.log_softmax(logits.astype(wide(logits.dtype)), axis=-1)
