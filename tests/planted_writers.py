"""A model whose writers and cancellers are known, and a rule that they follow.

One layer without norm and MLP. Every head looks at the labels shown and writes
their mean, times its own weight, along one direction; the answer is read from
it. The rule is that all labels of a prompt are the same.
"""

import jax
import jax.numpy as jnp
import numpy as np
import tokenizers as backends
from tokenizers import models, pre_tokenizers

from headjax.data.in_context import LINES, Example, encode, shuffle_labels
from headjax.models import weights
from headjax.models.config import ModelConfig
from headjax.models.load import LoadedModel
from headjax.models.tokenizers import Tokenizer
from headjax.studies.writers.prompts import Prompts

TOKENS = (*"01234567", ",", "\n", "A", "B", "<bos>")
WEIGHTS = (1.0, 0.6, -0.4, 0.01, 0.0)
SHARP = 12.0  # how much more a label is looked at than anything else


def tokenizer() -> Tokenizer:
  """A token is a character."""
  ids = {token: i for i, token in enumerate(TOKENS)}
  backend = backends.Tokenizer(models.WordLevel(ids, unk_token="<bos>"))
  backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
  backend.add_special_tokens(["<bos>"])
  return Tokenizer(backend, "planted", ids["<bos>"])


def model(head_weights=WEIGHTS, *, noise=0.05, seed=0) -> LoadedModel:
  """The model; the stream is one coordinate a token, and one for the answer.

  Args:
    head_weights: `[head]`; negative ones cancel.
    noise: what a digit looks like as a label.
    seed: of the noise.
  """
  n, width = len(TOKENS), len(TOKENS) + 1
  config = ModelConfig(
    1, len(head_weights), width, 1, 0, n, 64,
    norm="none", mlp="none", positions="none", tied=False,
    qkv_bias=False, out_bias=False,
  )  # fmt: skip
  raw = {k: np.zeros(s) for k, s in weights.shapes(config).items()}
  label = np.isin(TOKENS, ["A", "B"]).astype(float)
  sign = (np.array(TOKENS) == "A") - 1.0 * (np.array(TOKENS) == "B")
  digit = np.random.default_rng(seed).normal(0, noise, n)
  digit[8:] = 0
  raw["W_E"][:, :n] = np.eye(n)
  raw["W_U"][n] = sign
  raw["W_Q"][0, :n] = SHARP
  raw["W_K"][0, :n] = label[:, None, None] + 0.7 * (digit != 0)[:, None, None]
  raw["W_V"][0, :n] = (sign + digit)[:, None, None]
  raw["W_O"][0, :, 0, n] = head_weights
  params = weights.pack(config, raw, "planted")
  params = jax.tree.map(lambda x: jnp.asarray(x, "float32"), params)
  return LoadedModel(config, params, tokenizer(), "planted", "0" * 64)


# Heads of `circuit`, each (layer, head).
WRITERS = [(1, 0), (1, 1)]
CANCELLER, SUPPRESSOR, CASCADE = (1, 2), (1, 3), (2, 0)
PREVIOUS, INDUCTION = (0, 0), (1, 4)


def circuit(*, cancel=0.4, suppress=0.25, cascade=0.2) -> LoadedModel:
  """Three layers with one head of each kind that could be taken for others.

  Two writers and a canceller see the labels, and carry the digits, too, where
  nobody reads them; a copy suppressor carries nothing but labels; an induction
  head, behind a previous-token head, copies a little; and a head of the last
  layer takes away a share of what has been written for the answer.

  Args:
    cancel: weight of the canceller; the writers have 1 and 0.6.
    suppress: weight of the copy suppressor.
    cascade: share that the last head takes away.
  """
  n, n_ctx = len(TOKENS), 64
  token, answer, place = np.arange(n), n, [n + 1, n + 2]
  previous, copied = n + 3 + token, 2 * n + 3 + token
  config = ModelConfig(
    3, 6, 3 * n + 3, n + 1, 0, n, n_ctx,
    norm="none", mlp="none", tied=False, qkv_bias=False, out_bias=False,
  )  # fmt: skip
  raw = {k: np.zeros(s) for k, s in weights.shapes(config).items()}
  Q, K, V, out = (raw[f"W_{letter}"] for letter in "QKVO")
  sign = (np.array(TOKENS) == "A") - 1.0 * (np.array(TOKENS) == "B")
  raw["W_E"][:, :n] = np.eye(n)
  angle = 2 * np.pi / n_ctx
  turns = angle * np.arange(n_ctx)
  raw["W_pos"][:, place] = np.stack([np.cos(turns), np.sin(turns)], axis=1)
  raw["W_U"][answer] = sign
  raw["W_U"][copied] = 0.2 * np.eye(n)

  def seen(layer, head, back):
    """A head that looks at the token so many places before."""
    c, s = np.cos(back * angle), np.sin(back * angle)
    Q[layer, place, head, :2] = 2e4 * np.array([[c, -s], [s, c]])
    K[layer, place, head, :2] = np.eye(2)

  seen(*PREVIOUS, 1)
  V[0, token, 0, token] = out[0, 0, token, previous] = 1
  for (_, head), weight in zip(
    (*WRITERS, CANCELLER, SUPPRESSOR), (1, 0.6, -cancel, -suppress), strict=True
  ):
    Q[1, token, head, 0] = 60
    K[1, token, head, 0] = np.abs(sign)
    V[1, token, head, 0] = sign
    out[1, head, 0, answer] = weight
    if head != SUPPRESSOR[1]:
      V[1, token[:8], head, 1 + token[:8]] = 1
      out[1, head, 1 + token[:8], copied[:8]] = weight
  Q[1, token, 4, token] = 60
  K[1, previous, 4, token] = V[1, token, 4, token] = 1
  out[1, 4, token, copied] = 0.1
  seen(*CASCADE, 0)
  V[2, answer, 0, 0], out[2, 0, 0, answer] = 1, -cascade
  params = weights.pack(config, raw, "planted")
  params = jax.tree.map(lambda x: jnp.asarray(x, "float32"), params)
  return LoadedModel(config, params, tokenizer(), "circuit", "1" * 64)


def prompts(own: Tokenizer, *, count=40, shuffles=4) -> Prompts:
  """Prompts of the rule, and those of the other label as flips."""
  return Prompts(
    _in_context(own, count, 0),
    [_shuffled(own, count, seed) for seed in range(shuffles)],
    _in_context(own, count, 1),
    _in_context(own, count, 2),
  )


def _examples(count, seed):
  rng = np.random.default_rng(seed)
  found = []
  for i in range(count):
    inputs = [f"{a},{b}" for a, b in rng.integers(0, 8, (5, 2))]
    pair = []
    for label in ("AB", "BA")[i % 2]:
      shown = tuple((given, label) for given in inputs[:4])
      pair.append(Example(shown, inputs[4], *("AB", "BA")[i % 2]))
    found.append(pair)
  return list(zip(*found, strict=True))


def _in_context(own, count, seed):
  clean, flipped = _examples(count, seed)
  return encode(clean, flipped, LINES, own, name="all alike")


def _shuffled(own, count, seed):
  """Labels of other prompts, since those of one prompt are all alike."""
  clean, flipped = _examples(count, 0)
  rng = np.random.default_rng(seed + 100)
  mixed = []
  for a, b in zip(clean, flipped, strict=True):
    shown = tuple((a, b)[rng.integers(2)].demonstrations[j] for j in range(4))
    example = Example(shown, a.query, a.answer, a.foil)
    mixed.append(shuffle_labels(example, seed))
  return encode(mixed, clean, LINES, own, name="all alike").pairs
