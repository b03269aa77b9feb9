"""An attention-only model of two layers whose heads are built by hand.

Of eight heads a layer, some do one thing each and the rest next to nothing:

  layer 0   1 previous token (writes where layer 1 looks for it), 3 first,
            4 self, 5 local
  layer 1   2 induction (writes the answer), 6 duplicate

The stream has coordinates for the token, the position, the previous token and
the answer; a constant is in the position's first one.
"""

import jax
import jax.numpy as jnp
import numpy as np

from headjax.data.induction import random_induction
from headjax.models import weights
from headjax.models.config import ModelConfig
from headjax.models.load import LoadedModel

VOCABULARY, LENGTH, N_HEADS, WIDTH = 220, 64, 8, 64
PREVIOUS, INDUCTION = (0, 1), (1, 2)
CLASSES = {
  (0, 1): "previous", (0, 3): "first", (0, 4): "self", (0, 5): "local",
  (1, 2): "induction", (1, 6): "duplicate",
}  # fmt: skip
_SHARP = 300.0  # scores of what a head looks for


def planted(seed: int = 0) -> LoadedModel:
  """The model; the seed is of its token vectors and its idle heads."""
  random = np.random.default_rng(seed)
  d_model = 3 * WIDTH + LENGTH
  token, before, answer = (slice(i * WIDTH, (i + 1) * WIDTH) for i in range(3))
  place = slice(3 * WIDTH, d_model)
  d_head = WIDTH + LENGTH
  config = ModelConfig(
    2, N_HEADS, d_model, d_head, 0, VOCABULARY, LENGTH,
    norm="none", mlp="none", qkv_bias=False, out_bias=False, tied=False,
  )  # fmt: skip
  w = {
    name: 0.01 * random.normal(size=shape)
    for name, shape in weights.shapes(config).items()
  }
  vectors = random.normal(size=(VOCABULARY, WIDTH))
  vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
  w["W_E"], w["W_pos"] = (np.zeros_like(w[k]) for k in ("W_E", "W_pos"))
  w["W_E"][:, token] = vectors
  w["W_pos"][:, place] = np.eye(LENGTH)
  w["W_U"] = np.zeros_like(w["W_U"])
  w["W_U"][answer] = 20 * vectors.T

  score = _SHARP * np.sqrt(d_head)
  line = np.arange(LENGTH)
  by_token, by_place = slice(0, WIDTH), slice(WIDTH, d_head)

  def looks(layer, head, wanted):
    """By position: `wanted[query, key]` is the score."""
    for name in ("W_Q", "W_K"):
      w[name][layer, :, head] = 0
    w["W_Q"][layer, place, head, by_place] = score * wanted
    w["W_K"][layer, place, head, by_place] = np.eye(LENGTH)

  def matches(layer, head, source, not_itself=False):
    """By token: keys whose `source` is the query's token."""
    for name in ("W_Q", "W_K"):
      w[name][layer, :, head] = 0
    w["W_Q"][layer, token, head, by_token] = score * np.eye(WIDTH)
    w["W_K"][layer, source, head, by_token] = np.eye(WIDTH)
    if not_itself:
      w["W_Q"][layer, place, head, by_place] = -score * np.eye(LENGTH)
      w["W_K"][layer, place, head, by_place] = np.eye(LENGTH)

  def copies(layer, head, to):
    w["W_V"][layer, :, head] = w["W_O"][layer, head] = 0
    w["W_V"][layer, token, head, by_token] = np.eye(WIDTH)
    w["W_O"][layer, head, by_token, to] = np.eye(WIDTH)

  back = line[:, None] - line[None]
  looks(0, 1, (back == 1) * 1.0)
  copies(0, 1, before)
  looks(0, 3, np.broadcast_to(line == 0, back.shape) * 1.0)
  looks(0, 4, (back == 0) * 1.0)
  looks(0, 5, ((back >= 2) & (back <= 5)) * 1.0)
  matches(1, 2, before)
  copies(1, 2, answer)
  matches(1, 6, token, not_itself=True)
  params = weights.pack(config, w, "planted")
  params = jax.tree.map(lambda x: jnp.asarray(x, "float32"), params)
  return LoadedModel(config, params, None, "planted", "0" * 64)


def rows(n: int = 64):
  """The probe that the model answers."""
  return random_induction(VOCABULARY, LENGTH, n, length=LENGTH)
