"""What does a site hold, at the last position or at all? Rows, streamed."""

import functools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check, check_choice
from headjax.interventions import chunks
from headjax.interventions.sweep import PRECISION
from headjax.models.compiling import fast_jit
from headjax.models.config import ModelConfig
from headjax.models.decoder import run
from headjax.models.layers import wide
from headjax.models.load import LoadedModel
from headjax.models.prompts import check_prompts
from headjax.models.sites import available

SITES = (
  "attn_out", "k", "mlp_out", "q", "resid_mid", "resid_post", "resid_pre", "v",
  "z",
)  # fmt: skip


def activations(
  model: LoadedModel,
  tokens: np.ndarray,
  layer: int,
  *,
  site: str = "resid_post",
  lengths: np.ndarray | None = None,
  every_position: bool = False,
  examples: int = 64,
) -> np.ndarray:
  """`[n, d]` activations of one layer, float64.

  Args:
    model: from `load_model`, or one that was just trained.
    tokens: `[example, pos]` ids, padded on the right.
    layer: whose.
    site: which; those of heads are laid side by side.
    lengths: `[example]`, in tokens; None means the full width.
    every_position: whether all positions are rows, or the last of a prompt.
    examples: at once.

  Returns:
    Rows of valid positions, example after example.

  Raises:
    ValueError: there is no such site or layer, or the tokens cannot be run.
  """
  check_site(model.config, site)
  check_choice("layer", layer, range(model.config.n_layers))
  tokens, lengths = check_prompts(model.config, tokens, lengths)
  found = [
    H[layer][valid]
    for H, valid in portions(
      model, tokens, lengths, site, every_position, examples
    )
  ]
  return np.concatenate(found).astype(np.float64)


def check_site(config: ModelConfig, site: str) -> None:
  """Fails unless a model has a site, with a vector at every position."""
  check_choice("site", site, SITES)
  why = available(config)[site]
  check(
    not why, "site", f"{site}, {why}", "one that there is", "choose another"
  )


def portions(
  model: LoadedModel,
  tokens: np.ndarray,
  lengths: np.ndarray,
  site: str,
  every_position: bool,
  examples: int,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
  """Yields `[layer, batch, pos, d]` and which are valid, `[batch, pos]`.

  Args:
    model: from `load_model`, or one that was just trained.
    tokens: `[example, pos]`, checked.
    lengths: `[example]`, checked.
    site: one that there is.
    every_position: whether pos is all positions, or the last alone.
    examples: at once.
  """
  for index, place in chunks.slices(len(tokens), min(examples, len(tokens))):
    with jax.default_matmul_precision(PRECISION):
      H, valid = _activations(
        model.model, model.params, tokens[index], lengths[index], site=site,
        every=every_position,
      )  # fmt: skip
    size = place.stop - place.start
    yield np.asarray(H)[:, :size], np.asarray(valid)[:size]


@functools.partial(fast_jit, static_argnames=("model", "site", "every"))
def _activations(model, params, tokens, lengths, *, site, every):
  """`[layer, batch, pos, d]` and the valid ones; of the last, pos is 1."""
  valid = jnp.arange(tokens.shape[1])[None] < lengths[:, None]
  _, acts = run(model, params, tokens, key_valid=valid)
  H = getattr(acts, site)
  H = H.reshape(*H.shape[:3], -1).astype(wide(H.dtype))
  if every:
    return H, valid
  last = (lengths - 1)[None, :, None, None]
  return jnp.take_along_axis(H, last, axis=2), valid[:, :1]
