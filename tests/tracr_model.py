"""A model whose circuit is known: RASP's `reverse`, compiled by tracr.

Four layers of one head: layer 0 computes lengths, layer 3 fetches the mirrored
token, the MLPs turn lengths into indices.
"""

import itertools

import jax.numpy as jnp
import numpy as np
from tracr.compiler import compiling, lib
from tracr.rasp import rasp

from headjax.models import weights
from headjax.models.config import ModelConfig
from headjax.models.load import LoadedModel

VOCABULARY = (1, 2, 3)
MAX_LENGTH = 5
ATTENTION = {"W_Q": "query", "W_K": "key", "W_V": "value"}


def compile_reverse():
  """tracr's own model of the program."""
  program = lib.make_reverse(rasp.tokens)
  return compiling.compile_rasp_to_model(
    program, vocab=set(VOCABULARY), max_seq_len=MAX_LENGTH, compiler_bos="BOS"
  )


def compile_fractions():
  """tracr's own model of the share of "x" among the tokens so far."""
  program = lib.make_frac_prevs(rasp.tokens == "x")
  return compiling.compile_rasp_to_model(
    program, vocab=set("wxyz"), max_seq_len=MAX_LENGTH, compiler_bos="BOS"
  )


def convert(compiled, W_U=None) -> LoadedModel:
  """The same model as ours; output token i is `compiled`'s i-th output.

  With a `W_U` `[d_model, vocab]` the output is what that reads.
  """
  params, shape = compiled.params, compiled.model_config
  n_layers, n_heads, d_head = (
    shape.num_layers, shape.num_heads, shape.key_size,
  )  # fmt: skip
  token = np.asarray(params["token_embed"]["embeddings"])
  position = np.asarray(params["pos_embed"]["embeddings"])
  d_model = token.shape[1]
  config = ModelConfig(
    n_layers, n_heads, d_model, d_head, shape.mlp_hidden_size,
    len(token), len(position),
    norm="none", mlp="relu", tied=False, causal=False,
  )  # fmt: skip

  def stack(name, leaf, *axes):
    values = [
      params[f"transformer/layer_{layer}/{name}"][leaf]
      for layer in range(n_layers)
    ]
    return jnp.stack(values).reshape(n_layers, *axes)

  if W_U is None:
    W_U = _unembedding(compiled, d_model, len(token))
  heads = (n_heads, d_head)
  w = {
    "W_E": token,
    "W_pos": position,
    "W_O": stack("attn/linear", "w", *heads, d_model),
    "b_O": stack("attn/linear", "b", d_model),
    "W_in": stack("mlp/linear_1", "w", d_model, -1),
    "b_in": stack("mlp/linear_1", "b", -1),
    "W_out": stack("mlp/linear_2", "w", -1, d_model),
    "b_out": stack("mlp/linear_2", "b", d_model),
    "W_U": W_U,
  }
  for ours, theirs in ATTENTION.items():
    w[ours] = stack(f"attn/{theirs}", "w", d_model, *heads)
    w[f"b_{ours[-1]}"] = stack(f"attn/{theirs}", "b", *heads)
  w = {name: jnp.asarray(array) for name, array in w.items()}
  params = weights.pack(config, w, "reverse")
  return LoadedModel(config, params, None, "reverse", "0" * 64)


def _unembedding(compiled, d_model, d_vocab):
  """Output ids read the basis directions that are named after the program."""
  W_U = np.zeros((d_model, d_vocab), np.float32)
  for value, index in compiled.output_encoder.encoding_map.items():
    (row,) = [
      i
      for i, label in enumerate(compiled.residual_labels)
      if label.startswith("reverse") and label.endswith(f":{value}")
    ]
    W_U[row, index] = 1
  return W_U


def all_strings(compiled):
  """Every string of length 3 to 5 as one right-padded batch.

  Returns:
    Tokens with BOS first, the reversed string's output ids, and which tokens
    are real, each `[string, pos]`.
  """
  encode = compiled.input_encoder.encoding_map
  decode = compiled.output_encoder.encoding_map
  strings = [
    s
    for n in range(3, MAX_LENGTH + 1)
    for s in itertools.product(VOCABULARY, repeat=n)
  ]
  shape = (len(strings), MAX_LENGTH + 1)
  # The padding is a real token on purpose: only the mask may hide it.
  tokens, target = np.zeros(shape, int), np.full(shape, -1)
  valid = np.zeros(shape, bool)
  for i, s in enumerate(strings):
    stop = len(s) + 1
    tokens[i, :stop] = [encode["BOS"], *(encode[x] for x in s)]
    target[i, 1:stop] = [decode[x] for x in reversed(s)]
    valid[i, :stop] = True
  return tokens, target, valid
