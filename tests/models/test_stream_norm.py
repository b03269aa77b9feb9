"""Is a model whose stream is normed after every half the oracle's?"""

import dataclasses

import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from helpers import LLAMA, POST, random_model, random_tokens
from one_line import refusal

from headjax.models import decoding, weights
from headjax.models.decoder import run, unembed, unembed_tokens
from headjax.models.sites import Edit, Edits
from headjax.models.spaces import read_spaces

CASES = {
  "post": POST,
  "attention only": dataclasses.replace(POST, mlp="none", d_mlp=0),
  "rms, grouped": dataclasses.replace(LLAMA, norm_at="stream"),
}
N_POS = 9


@pytest.mark.parametrize("name", CASES)
def test_forward_is_the_oracle_s(x64, name):
  model, w = random_model(CASES[name])
  tokens = random_tokens(model.config, (2, N_POS))
  resid, acts = run(model.model, model.params, jnp.asarray(tokens))
  logits = unembed(model.model, model.params, resid)
  for b in range(2):
    want, want_logits, seen = oracle.forward(model.config, w, tokens[b])
    np.testing.assert_allclose(resid[b], want, rtol=0, atol=1e-10)
    np.testing.assert_allclose(logits[b], want_logits, rtol=0, atol=1e-10)
    for site in seen:
      got = getattr(acts, site)[:, b]
      np.testing.assert_allclose(got, seen[site], rtol=0, atol=1e-10)


def test_every_half_ends_with_a_norm_of_the_sum(x64):
  """By hand: mean 0 and variance 1 before gain and bias, in every layer."""
  model, w = random_model(POST)
  tokens = jnp.asarray(random_tokens(POST, (2, N_POS)))
  resid, acts = run(model.model, model.params, tokens)
  for site, name, total in (
    ("resid_mid", "attn_out_norm", acts.resid_pre + acts.attn_out),
    ("resid_post", "mlp_out_norm", acts.resid_mid + acts.mlp_out),
  ):
    total = np.asarray(total)
    unit = total - total.mean(-1, keepdims=True)
    unit /= np.sqrt((unit**2).mean(-1, keepdims=True) + POST.norm_eps)
    gain, bias = (
      w[f"{name}_{part}"][:, None, None] for part in ("gain", "bias")
    )
    got = getattr(acts, site)
    np.testing.assert_allclose(got, unit * gain + bias, atol=1e-12)
  np.testing.assert_array_equal(acts.resid_post[-1], resid)


def test_nothing_lies_between_the_stream_and_the_unembedding(x64):
  model, w = random_model(POST)
  resid = np.random.default_rng(0).normal(size=(2, 3, POST.d_model))
  logits = unembed(model.model, model.params, jnp.asarray(resid))
  np.testing.assert_allclose(logits, resid @ w["W_U"], atol=1e-12)
  ids = np.array([[1, 2, 3], [0, 7, 28]])
  one = unembed_tokens(model.model, model.params, jnp.asarray(resid), ids)
  picked = np.take_along_axis(np.asarray(logits), ids[..., None], -1)[..., 0]
  np.testing.assert_allclose(one, picked, atol=1e-12)
  assert not {n for n in weights.shapes(POST) if n.startswith("final_norm")}


@pytest.mark.slow
def test_own_value_changes_nothing():
  model, _ = random_model(POST, dtype="float32")
  tokens = jnp.asarray(random_tokens(POST, (2, N_POS)))
  resid, acts = run(model.model, model.params, tokens)
  ones = jnp.ones(POST.n_layers)
  for site in ("attn_out", "resid_mid", "mlp_out", "resid_post"):
    edit = Edit(ones, getattr(acts, site))
    same, _ = run(model.model, model.params, tokens, Edits(**{site: (edit,)}))
    np.testing.assert_allclose(resid, same, rtol=0, atol=2e-5)


def test_cache_changes_nothing(x64):
  model, _ = random_model(POST)
  tokens = random_tokens(POST, (2, N_POS))
  resid, _ = run(model.model, model.params, jnp.asarray(tokens))
  lengths = jnp.array([N_POS - 1] * 2)
  start = decoding.prefill(
    model.model, model.params, jnp.asarray(tokens[:, :-1]), lengths, 1
  )
  last, _ = decoding.step(
    model.model, model.params, jnp.asarray(tokens[:, -1]), start[1]
  )
  np.testing.assert_allclose(last, resid[:, -1], atol=1e-10)


def test_heads_read_the_stream_as_it_is():
  """It is normed already, so that no gain is folded into their spaces."""
  model, _ = random_model(POST, dtype="float32")
  found = [
    read_spaces(model.params, POST, "Q", folded=folded).columns
    for folded in (False, True)
  ]
  np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
  "field, value",
  [("norm", "none"), ("norm", "layernorm_bare"), ("parallel", True)],
)
def test_impossible_neighbours_are_refused(field, value):
  with refusal("'stream'"):
    dataclasses.replace(POST, **{field: value})
