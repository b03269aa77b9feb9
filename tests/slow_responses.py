"""Responses as plain Python: full forwards, edited at the reader's layer.

The inputs of heads are computed from the raw weights; attention patterns are
those of forwards whose stream, queries or keys are replaced in one layer.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import oracle
from slow_clamps import prompts

from headjax.models import weights
from headjax.models.decoder import run
from headjax.models.sites import Edit, Edits


@functools.partial(jax.jit, static_argnames="model")
def forward(model, params, tokens, edits):
  """All activations."""
  return run(model, params, tokens, edits)[1]


def reader_inputs(config, w, layer, x):
  """What every query head's maps make of a stream `[pos, d_model]`."""

  def at(name):
    return w[name][layer] if name in w else None

  if config.read.kind == "block":
    frames = config.read.dense(config.sizes)[layer]
    blocks = np.einsum("pd,hde->phe", x, frames)
    blocks = oracle._norm(
      config, blocks, at("block_norm_gain"), at("block_norm_bias")
    )
    return {
      letter: np.einsum("phe,hef->phf", blocks, at(f"W_{letter}"))
      for letter in "QKV"
    }
  if config.norm_at != "output":
    x = oracle._norm(config, x, at("attn_norm_gain"), at("attn_norm_bias"))
  letters = "QKVG" if config.attention == "screening" else "QKV"
  found = {}
  for letter in letters:
    y = np.einsum("pd,dhe->phe", x, at(f"W_{letter}"))
    found[letter] = np.repeat(y, config.n_heads // y.shape[1], axis=1)
  return found


class Runs:
  """Forwards of one prompt with one layer's sites replaced."""

  def __init__(self, loaded, tokens):
    self.loaded, self.tokens, config = loaded, tokens, loaded.config
    L, H, n = config.n_layers, config.n_heads, tokens.shape[1]
    self.shapes = {
      "resid_pre": (L, 1, n, config.d_model),
      "q": (L, 1, n, H, config.d_key),
      "k": (L, 1, n, H, config.d_key),
      "z": (L, 1, n, H, config.d_head),
    }

  def __call__(self, layer=0, head=None, **values):
    """Activations with `[pos, ...]` values at a layer, or one head of it."""
    edits = {}
    for site, shape in self.shapes.items():
      gate, value = np.zeros(shape), np.zeros(shape)
      if site in values:
        where = (layer, 0) if head is None else (layer, 0, slice(None), head)
        gate[where], value[where] = 1, values[site]
      edits[site] = (Edit(jnp.asarray(gate), jnp.asarray(value)),)
    acts = forward(
      self.loaded.model, self.loaded.params, self.tokens, Edits(**edits)
    )
    return jax.tree.map(np.asarray, acts)


def responses(loaded, w, pairs):
  """`products[sl, sh, l, h, input, 3]` and `variation[sl, sh, l, h, 4]`."""
  config = loaded.config
  L, H = config.n_layers, config.n_heads
  n_inputs = 4 if config.attention == "screening" else 3
  products = np.zeros((L, H, L, H, n_inputs, 3))
  variation = np.zeros((L, H, L, H, 4))
  W_O = np.asarray(weights.per_query_head(loaded.params, config, "W_O"))
  for i in range(len(pairs)):
    clean_tokens, reference_tokens = prompts(pairs, i)
    see = Runs(loaded, clean_tokens)
    clean, reference = see(), Runs(loaded, reference_tokens)()
    for layer, head in np.ndindex(L, H):
      z = reference.z[layer, 0, :, head]
      patched = see(layer, head, z=z)
      delta = (z - clean.z[layer, 0, :, head]) @ W_O[layer, head]
      if config.norm_at != "input":
        delta = (patched.attn_out - clean.attn_out)[layer, 0]
      for later in range(layer + 1, L):
        x, total = clean.resid_pre[later, 0], patched.resid_pre[later, 0]
        own, d, t = (
          reader_inputs(config, w, later, y) for y in (x, x + delta, total)
        )
        for j, letter in enumerate(own):
          a, b = d[letter] - own[letter], t[letter] - own[letter]
          for k, (c, e) in enumerate(((a, b), (a, a), (b, b))):
            products[layer, head, later, :, j, k] += (c * e).sum((0, 2))
        direct = see(later, resid_pre=x + delta)
        moved = (
          see(later, q=direct.q[later, 0]),
          see(later, k=direct.k[later, 0]),
          direct,
          patched,
        )
        for k, acts in enumerate(moved):
          change = (
            acts.pattern[later, 0, :, -1] - clean.pattern[later, 0, :, -1]
          )
          variation[layer, head, later, :, k] += np.abs(change).sum(-1) / 2
  return products, variation
