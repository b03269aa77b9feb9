"""How far does an intervention move the whole prediction? In nats.

The vocabulary is gone through in pieces, whose logits stay in a core's cache:
written out whole, the logits of a sweep's rows take longer than the product
that makes them.
"""

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

from headjax.models.decoder import Decoder, unembed, unembed_tokens
from headjax.models.layers import bend, rows, wide
from headjax.outline import of_fields, table_of_fields

PIECE = 1024  # tokens at once


@flax.struct.dataclass
class NegativeKL:
  """-KL(clean || patched) over the whole vocabulary; 0 for the clean run.

  Negative, so that the effect, clean minus patched, is the divergence itself.

  Attributes:
    clean: `[example, d_model]`, the clean run's final stream at the answer.
  """

  clean: jax.Array

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def __call__(self, model: Decoder, params: Any, resid: jax.Array):
    """`[example]` of the stream `[example, d_model]`.

    With p the clean prediction and d what the logits gain beyond the gain of
    the clean run's first choice, KL = log sum p exp(d) - sum p d. Small
    divergences are small differences of large numbers in this form, so it is
    taken apart: KL = F + [log(1 + y) - y], where F = sum p (exp(d) - 1 - d),
    y = F + sum p d, and both terms are series where they are small.
    """
    logits = unembed(model, params, self.clean)
    logits = logits.astype(wide(logits.dtype))
    log_p = jax.nn.log_softmax(logits, axis=-1)
    gain = self._gain(model, params, resid, logits.argmax(-1))
    mean, excess, log_sum = self._sums(
      model, params, resid, logits, log_p, gain
    )
    y = excess + mean
    near = excess + _log1p_less(y)
    far = log_sum - jax.nn.logsumexp(logits, axis=-1) - mean
    return -jnp.where(excess < 10, near, far)

  def _gain(self, model, params, resid, token):
    """`[example]`: what one token's logit gains."""
    twice = jnp.stack([resid, self.clean])
    tokens = jnp.broadcast_to(token, (2, *token.shape))
    patched, clean = unembed_tokens(model, params, twice, tokens)
    return (patched - clean).astype(wide(patched.dtype))

  def _sums(self, model, params, resid, logits, log_p, gain):
    """Sums over the vocabulary, piece by piece, each `[example]`.

    Returns:
      Of p d, of p (exp(d) - 1 - d), and the logarithm of that of the
      exponentials of the patched logits less `gain`.
    """
    variables = {"params": params}
    x = model.apply(variables, resid, method=Decoder.normed)
    directions = model.apply(variables, method=Decoder.directions)
    d_vocab = model.config.d_vocab
    size = min(PIECE, d_vocab)

    def add(sums, first):
      # The last piece begins earlier: what it repeats does not count.
      start = jnp.minimum(first, d_vocab - size)
      new = start + jnp.arange(size) >= first

      def cut(x, axis):
        return jax.lax.dynamic_slice_in_dim(x, start, size, axis)

      found = bend(rows(x, cut(directions, 0).T), model.config.logit_cap)
      moved = found.astype(logits.dtype) - gain[:, None]
      d = moved - cut(logits, 1)
      log_share = jnp.where(new, cut(log_p, 1), -jnp.inf)
      share = jnp.exp(log_share)
      mean, excess, log_sum = sums
      rest = jax.nn.logsumexp(jnp.where(new, moved, -jnp.inf), axis=-1)
      return (
        mean + (share * d).sum(-1),
        excess + _excess(share, log_share, d).sum(-1),
        jnp.logaddexp(log_sum, rest),
      ), None

    zero = jnp.zeros_like(gain)
    start = zero, zero, jnp.full_like(gain, -jnp.inf)
    return jax.lax.scan(add, start, jnp.arange(0, d_vocab, size))[0]


def _excess(p, log_p, d):
  """Terms of F, none of them negative."""
  series = d**2 * (1 / 2 + d * (1 / 6 + d * (1 / 24 + d / 120)))
  return jnp.where(
    jnp.abs(d) < 0.01, p * series, jnp.exp(log_p + d) - p - p * d
  )


def _log1p_less(y):
  """log(1 + y) - y."""
  series = -(y**2) * (1 / 2 - y * (1 / 3 - y * (1 / 4 - y / 5)))
  return jnp.where(jnp.abs(y) < 0.01, series, jnp.log1p(y) - y)
