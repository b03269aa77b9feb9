"""Is the first-order response of a reader split as its Jacobian says?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import FAMILIES, GPT2, PUBLIC, random_model, random_pairs
from one_line import refusal
from slow_params import slow_but

from headjax.geometry.designs import ReadDesign
from headjax.interventions.norm_term import norm_term
from headjax.models import weights
from headjax.models.block import Block, layer_statics
from headjax.models.decoder import run

BASE = dataclasses.replace(GPT2, d_head=4, d_key=None)
CASES = {
  "gpt2": GPT2,
  "llama": FAMILIES["llama_kv2"],
  "olmo": PUBLIC["olmo"],
  "block": dataclasses.replace(BASE, read=ReadDesign("block")),
  "rotated block": dataclasses.replace(
    BASE, read=ReadDesign("block", (3, 4, 5))
  ),
  "key block": dataclasses.replace(BASE, read=ReadDesign("block", (), "K")),
}


def inputs_of(model, layer, resid):
  """`[3, batch, pos, head, d_head]`: q, k and v of a stream, no clipping."""
  config = dataclasses.replace(model.config, qkv_clip=None, qk_norm=False)
  block = Block(config)
  take = lambda tree: jax.tree.map(lambda x: x[layer], tree)  # noqa: E731
  variables = {"params": take(weights.blocks(model.params))}
  statics = take(layer_statics(config))

  def read(block, resid):
    reads = block.reader(resid, statics.read)
    return jnp.stack(block.attention.project(reads, "QKV"))

  return block.apply(variables, resid, method=read)


def norm_scale(model, letter, x, head, layer):
  """sigma of the norm before an input, `[batch, pos]`."""
  if letter in model.config.read.blocks:
    x = x @ model.config.read.dense(model.config.sizes)[layer, head]
  if model.config.norm.startswith("layernorm"):
    x = x - x.mean(-1, keepdims=True)
  return np.sqrt((x**2).mean(-1) + model.config.norm_eps)


@pytest.mark.parametrize(
  "case", slow_but(["gpt2", "llama", "rotated block"], CASES)
)
def test_the_two_parts_are_those_of_the_jacobian(case, x64):
  model, raw = random_model(CASES[case])
  pairs = random_pairs(model.config, [6, 4], [2, 1])
  left_out, whole = norm_term(model, pairs, examples=1)
  valid = np.arange(6) < pairs.lengths[:, None]
  clean, reference = (
    run(model.model, model.params, tokens, key_valid=valid)[1]
    for tokens in (pairs.clean, pairs.reference)
  )
  W_O = np.asarray(weights.per_query_head(model.params, model.config, "W_O"))
  for source, i, layer in [(0, 1, 1), (0, 3, 2), (1, 0, 2)]:
    dz = np.asarray(reference.z - clean.z)[source, :, :, i]
    delta = np.where(valid[..., None], dz @ W_O[source, i], 0)
    x = clean.resid_pre[layer]
    _, response = jax.jvp(
      lambda x, layer=layer: inputs_of(model, layer, x), (x,), (delta,)
    )
    squares = np.asarray(response**2)[:, valid].sum(axis=(1, 3))
    at = np.s_[:, source, i, layer]
    np.testing.assert_allclose(whole[at], squares, rtol=1e-8)
    for n, letter in enumerate("QKV"):
      for j in range(model.config.n_heads):
        # What a reader with a fixed scale would do, less what it does.
        sigma = norm_scale(model, letter, np.asarray(x), j, layer)
        A = linear_map(model, raw, letter, layer, j)
        fixed = delta @ A / sigma[..., None]
        rest = fixed - np.asarray(response)[n, :, :, j]
        expected = np.sum(rest[valid] ** 2)
        np.testing.assert_allclose(left_out[at][n, j], expected, rtol=1e-7)
  assert np.isnan(left_out[:, 1, :, :2]).all()
  assert np.isfinite(whole[:, 0, :, 1:]).all()


def linear_map(model, raw, letter, layer, j):
  """`[d_model, d_head]`: gain, centring and weight, from stored weights."""
  config = model.config
  W = raw[f"W_{letter}"]
  if letter in config.read.blocks:
    frame = config.read.dense(config.sizes)[layer, j]
    W = raw["block_norm_gain"][layer, j][:, None] * W[layer, j]
    return frame @ (W - W.mean(0))
  W = W[layer, :, j * W.shape[2] // config.n_heads]
  if "attn_norm_gain" in raw:
    W = raw["attn_norm_gain"][layer][:, None] * W
  return W - W.mean(0) if config.norm.startswith("layernorm") else W


def test_readers_without_one_norm_are_refused():
  for family, got in [("tracr", "no norm"), ("gemma2", "a norm of the attent")]:
    model, _ = random_model((FAMILIES | PUBLIC)[family], dtype="float32")
    with refusal("model", got):
      norm_term(model, random_pairs(model.config, [6, 6], [1, 1]))
  config = dataclasses.replace(BASE, read=ReadDesign("block_norm"))
  model, _ = random_model(config, dtype="float32")
  with refusal("model", "norms by block"):
    norm_term(model, random_pairs(config, [6, 6], [1, 1]))
