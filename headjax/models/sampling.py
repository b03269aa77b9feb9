"""Which token comes next? The likeliest, or one drawn by its probability.

A draw adds Gumbel noise to the logits and takes the largest. The noise is a
function of the seed, the row and the step alone, so that neither the number of
rows nor what the others do changes what a row draws.
"""

import jax
import jax.numpy as jnp

from headjax.models.layers import wide


def greedy(logits: jax.Array) -> jax.Array:
  """`[batch]` int: the first of the largest logits `[batch, vocab]`."""
  return logits.argmax(axis=-1).astype(jnp.int32)


def draw(
  logits: jax.Array,
  seed: jax.Array,
  step: jax.Array,
  temperature: jax.Array,
  top_k: int | None = None,
) -> jax.Array:
  """Draws one token a row; traceable.

  Args:
    logits: `[batch, vocab]`.
    seed: scalar int.
    step: scalar int, how many tokens were drawn before.
    temperature: scalar, more than 0; logits are divided by it.
    top_k: only tokens whose logit is among the so many largest, and ties of
      the last of them, are drawn; None means all.

  Returns:
    `[batch]` int.
  """
  logits = logits.astype(wide(logits.dtype))
  if top_k is not None:
    least = jax.lax.top_k(logits, top_k)[0][:, -1:]
    logits = jnp.where(logits < least, -jnp.inf, logits)
  return greedy(logits / temperature + _noise(seed, step, logits.shape))


def _noise(seed, step, shape):
  """`[batch, vocab]` Gumbel noise, the same numbers in every float type."""
  stream = jax.random.fold_in(jax.random.key(seed), step)
  keys = jax.vmap(jax.random.fold_in, (None, 0))(stream, jnp.arange(shape[0]))
  return jax.vmap(lambda key: jax.random.gumbel(key, shape[1:], jnp.float32))(
    keys
  )
