"""Which prompts can a model run, and how wide is the array that holds them?"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check
from headjax.models.config import ModelConfig
from headjax.models.decoder import check_tokens, default_context
from headjax.models.softmax import Context

NARROWEST = 16  # tokens


def check_prompts(
  config: ModelConfig,
  tokens: np.ndarray,
  lengths: Sequence[int] | np.ndarray | None = None,
  *,
  room: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
  """Prompts as host arrays, with one length a row.

  Args:
    config: of the model that is to run them.
    tokens: `[batch, pos]` ids, padded on the right with any ids.
    lengths: `[batch]`, in tokens; None means the full width.
    room: tokens that will follow.

  Returns:
    Tokens `[batch, pos]` and lengths `[batch]`, int32.

  Raises:
    ValueError: ids or lengths that the model cannot run.
  """
  found = np.asarray(tokens)
  check(
    found.ndim == 2 and found.size and np.issubdtype(found.dtype, np.integer),
    "tokens",
    f"shape {found.shape} of {found.dtype}",
    "[batch, pos] ids with at least one of each",
    "pass one row of ids a prompt, padded on the right",
  )
  check_tokens(config, found)
  if lengths is None:
    lengths = np.full(len(found), found.shape[1])
  lengths = np.asarray(lengths)
  check(
    lengths.shape == found.shape[:1]
    and np.issubdtype(lengths.dtype, np.integer)
    and 1 <= lengths.min()
    and lengths.max() <= found.shape[1],
    "lengths",
    lengths.tolist(),
    f"{len(found)} lengths of 1 to {found.shape[1]} tokens",
    "count the tokens of each prompt without its padding",
  )
  check(
    lengths.max() + room <= config.n_ctx,
    "max_new",
    f"{room} after a prompt of {lengths.max()} tokens",
    f"at most {config.n_ctx} tokens together, the context of this model",
    "shorten the prompt, or ask for fewer",
  )
  return found.astype(np.int32), lengths.astype(np.int32)


def padded_context(tokens: jax.Array, lengths: jax.Array) -> Context:
  """Where prompts padded on the right stand; traceable.

  Args:
    tokens: `[batch, pos]` ids.
    lengths: `[batch]`, in tokens; what is beyond is not attended to.
  """
  line = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None]
  return default_context(tokens, key_valid=line < lengths[:, None])


def bucket(n_tokens: int, n_ctx: int) -> int:
  """The smallest width of 16, 32, 64, ... that fits, at most the context."""
  width = NARROWEST
  while width < n_tokens:
    width *= 2
  return min(width, n_ctx)
