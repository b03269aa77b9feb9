"""What does a model go on to write, also while its inside is edited?

The prompts run once and leave their keys and values; then one compiled loop
computes a token at a time. Edits are held on: what is changed at the prompt is
changed at every new token, too.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check
from headjax.models import decoding, sampling
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder, unembed
from headjax.models.load import LoadedModel
from headjax.models.prompts import bucket, check_prompts
from headjax.models.sites import SITES, Edit, Edits, LinearEdit, check_edits

_MAPS = ("pattern", "scores")  # [layer, batch, head, query_pos, key_pos]


def generate(
  model: LoadedModel,
  tokens: np.ndarray,
  *,
  max_new: int,
  edits: Edits = Edits(),
  lengths: Sequence[int] | np.ndarray | None = None,
  temperature: float = 0.0,
  top_k: int | None = None,
  seed: int = 0,
  stop: int | Sequence[int] = (),
) -> np.ndarray:
  """Continues prompts, token by token.

  Edits apply to the prompts and to every new token. Only one that singles out
  positions of the prompt (a leaf whose position axis is longer than 1, or a
  matrix over keys) applies to the prompt alone: there is no saying what it
  would be further on.

  Prompts are padded to 16, 32, 64, ... tokens, so that all prompts of such a
  width, whatever their lengths, are one compile for a number of rows and
  `max_new`; with an edit that singles out positions, to their own width.

  Args:
    model: from `load_model`; causal.
    tokens: `[batch, pos]` ids of the prompts, padded on the right.
    max_new: how many tokens to add.
    edits: what to change. A `pattern` edit that is held on has value 0:
      others would attend to tokens that do not exist.
    lengths: `[batch]` of the prompts, in tokens; None means the full width.
    temperature: 0 takes the likeliest token; otherwise logits are divided by
      it and a token is drawn.
    top_k: draw only among the so many likeliest tokens; None means all.
    seed: of the draws. What row i draws at step t depends on the seed, i and
      t, not on other rows or how many there are.
    stop: ids that end a row; it repeats the one it ended with.

  Returns:
    `[batch, max_new]` int32, the new tokens.

  Raises:
    ValueError: ids or edits that do not fit the model, an attention that is
      not causal, or more tokens than its context holds.

  Examples:
    A tiny model with random weights goes on for two tokens:

    >>> from headjax.models import weights
    >>> config = ModelConfig(2, 2, 8, 4, 16, d_vocab=11, n_ctx=6)
    >>> draw = np.random.default_rng(0).standard_normal
    >>> raw = {k: draw(s, "f") for k, s in weights.shapes(config).items()}
    >>> params = weights.pack(config, raw, "tiny")
    >>> tiny = LoadedModel(config, params, None, "tiny", "")
    >>> generate(tiny, np.array([[5, 6, 7]]), max_new=2).shape
    (1, 2)
  """
  config = model.config
  tokens, lengths = check_prompts(config, tokens, lengths, room=max_new)
  _check_settings(config, max_new, temperature, top_k, seed)
  check_edits(config, edits)
  held = held_on(edits)
  _check_patterns(held)
  width = tokens.shape[1]
  if jax.tree.structure(held) == jax.tree.structure(edits):
    width = bucket(int(lengths.max()), config.n_ctx)
  padded = np.zeros((len(tokens), width), np.int32)
  kept = tokens[:, :width]
  padded[:, : kept.shape[1]] = kept
  with jax.default_matmul_precision("highest"):
    found = _generate(
      model.model, model.params, padded, lengths, edits, held,
      np.atleast_1d(np.asarray(stop, np.int32)),
      np.float32(temperature), np.uint32(seed),
      max_new=max_new, top_k=top_k, draws=temperature > 0,
    )  # fmt: skip
  return np.asarray(found)


@functools.partial(
  jax.jit, static_argnames=("model", "max_new", "top_k", "draws")
)
def _generate(
  model: Decoder, params: Any, tokens, lengths, edits, held, stop,
  temperature, seed, *, max_new, top_k, draws,
):  # fmt: skip
  def choose(resid, t):
    logits = unembed(model, params, resid)
    if draws:
      return sampling.draw(logits, seed, t, temperature, top_k)
    return sampling.greedy(logits)

  def more(state):
    t, _, done, _, _ = state
    return (t < max_new) & ~done.all()

  def one(state):
    t, last, done, found, cache = state
    resid, cache = decoding.step(model, params, last, cache, held)
    token = jnp.where(done, last, choose(resid, t))
    found = found.at[:, t].set(token)
    return t + 1, token, done | jnp.isin(token, stop), found, cache

  shared = not (edits.k or edits.v)
  resid, cache = decoding.prefill(
    model, params, tokens, lengths, max_new - 1, edits, shared=shared
  )
  token = choose(resid, 0)
  found = jnp.zeros((len(tokens), max_new), jnp.int32).at[:, 0].set(token)
  state = (jnp.int32(1), token, jnp.isin(token, stop), found, cache)
  t, token, _, found, _ = jax.lax.while_loop(more, one, state)
  return jnp.where(jnp.arange(max_new)[None] < t, found, token[:, None])


def held_on(edits: Edits) -> Edits:
  """The edits that new tokens get, too: those that single out no position."""
  return Edits(
    **{
      site: tuple(e for e in getattr(edits, site) if not _local(site, e))
      for site in SITES
    }
  )


def _local(site: str, edit: Edit | LinearEdit) -> bool:
  """Whether an edit singles out positions."""
  if isinstance(edit, LinearEdit) and site in _MAPS:
    return True
  axes = (3, 4) if site in _MAPS else (2,)
  leaves = (edit.gate, edit.value if isinstance(edit, Edit) else edit.gate)
  return any(
    jnp.ndim(leaf) > 1 and max(leaf.shape[axis] for axis in axes) > 1
    for leaf in leaves
  )


def _check_settings(config: ModelConfig, max_new, temperature, top_k, seed):
  for field, got in {"max_new": max_new, "top_k": top_k}.items():
    check(
      got is None or got >= 1, field, got, "at least 1", "ask for some tokens"
    )
  check(
    config.causal,
    "model",
    "attention in both directions",
    "causal attention",
    "a new token would change all earlier ones",
  )
  check(
    0 <= temperature < np.inf,
    "temperature",
    temperature,
    "0 or a positive number",
    "0 takes the likeliest token",
  )
  check(
    top_k is None or top_k <= config.d_vocab,
    "top_k",
    top_k,
    f"at most {config.d_vocab}, the vocabulary",
    "leave it out to draw among all tokens",
  )
  check(0 <= seed < 2**32, "seed", seed, "0 to 2**32 - 1", "choose another one")


def _check_patterns(held: Edits) -> None:
  """Refuses attention to tokens that are not there yet, or are padding."""
  for edit in held.pattern:
    check(
      not np.any(edit.value),
      "edits.pattern",
      "an edit with a value other than 0, held on at new tokens",
      "the value 0",
      "edit the scores, which cannot reach tokens that are not there",
    )
