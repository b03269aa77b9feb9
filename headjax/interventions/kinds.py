"""Which keys make a head of a kind? Those that it is known to attend to.

Of a query they are

  previous   the token before it
  duplicate  earlier tokens that are the same
  induction  the tokens that followed those, before the query itself
  first      the first token
  self       the query's own token
  local      the tokens 2, 3, 4 and 5 before it, of whose attention the mean is
             taken; of all others the sum

The first token, which has but itself to attend to, is no query.
"""

import jax
import jax.numpy as jnp

KINDS = ("previous", "duplicate", "induction", "first", "self", "local")
_LOCAL = (2, 5)  # tokens back, both included


def targets(tokens: jax.Array, lengths: jax.Array) -> jax.Array:
  """`[kind, batch, query, key]`: how much the attention to a key counts.

  Args:
    tokens: `[batch, pos]` ids.
    lengths: `[batch]`, in tokens; padding is no query.
  """
  n = tokens.shape[1]
  query, key = jnp.arange(n)[:, None], jnp.arange(n)[None]
  back = (query - key)[None]
  same = (tokens[:, :, None] == tokens[:, None, :]) & (back > 0)
  followed = jnp.pad(same, ((0, 0), (0, 0), (1, 0)))[:, :, :-1] & (back > 0)
  nearest, farthest = _LOCAL
  near = (back >= nearest) & (back <= farthest) & (query >= farthest)[None]
  found = {
    "previous": back == 1,
    "duplicate": same,
    "induction": followed,
    "first": key[None] == 0,
    "self": back == 0,
    "local": near / (1 + farthest - nearest),
  }
  asks = (query > 0)[None] & (query[None] < lengths[:, None, None])
  return jnp.stack(
    [jnp.where(asks, found[kind].astype(jnp.float32), 0) for kind in KINDS]
  )
