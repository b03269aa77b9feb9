"""Does a cache of keys and values change nothing but the work?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import FAMILIES, SCREENING, random_model, random_tokens

from headjax.interventions.edits import head_gates
from headjax.models import decoding
from headjax.models.decoder import run, unembed
from headjax.models.sites import Edit, Edits, LinearEdit

LENGTHS, N_NEW = [7, 2, 5], 9
MODELS = {
  name: dataclasses.replace(FAMILIES[name], n_ctx=20)
  for name in ("gpt2", "llama_kv2", "llama_windows")
} | {"screening": dataclasses.replace(SCREENING, n_ctx=20)}


def edits_of(config):
  """Edits of several kinds and sites, by layer, head or row."""
  rng = np.random.default_rng(3)
  n, h, d = config.n_layers, config.n_heads, config.d_model

  def normal(*shape):
    return jnp.asarray(rng.normal(size=shape))

  steering = normal(n, len(LENGTHS), 1, d)
  return Edits(
    resid_pre=(LinearEdit(jnp.ones(n), 0.3 * normal(n, d, d)),),
    pattern=(Edit(head_gates(config, "pattern")[2], jnp.zeros(n)),),
    z=(Edit(head_gates(config)[h + 1], jnp.zeros(n)),),
    attn_out=(Edit(jnp.full(n, 0.5), normal(n, 1, 1, d)),),
    resid_post=(Edit(jnp.full(n, 0.3), steering),),
  )


def edits_of_keys(config):
  """Edits that set the query heads of a group apart."""
  n, h, rng = config.n_layers, config.n_heads, np.random.default_rng(4)
  k = jnp.asarray(rng.normal(size=(n, 1, 1, h, config.d_key)))
  v = jnp.asarray(rng.normal(size=(n, 1, 1, h, config.d_head)))
  gates = head_gates(config)
  return Edits(k=(Edit(gates[1], k),), v=(Edit(gates[0], v),))


def rows(config, seed=0):
  """Prompts of unequal lengths, what follows them, and both in one array."""
  tokens = random_tokens(config, (len(LENGTHS), max(LENGTHS)), seed)
  new = random_tokens(config, (len(LENGTHS), N_NEW), seed + 1)
  whole = np.zeros((len(LENGTHS), max(LENGTHS) + N_NEW), int)
  for row, (prompt, n) in enumerate(zip(tokens, LENGTHS, strict=True)):
    whole[row, : n + N_NEW] = [*prompt[:n], *new[row]]
  return tokens, new, whole


def with_cache(model, tokens, new, edits, shared):
  """`[batch, 1 + N_NEW, vocab]` logits, one token at a time, and the cache."""

  @jax.jit
  def logits(params, edits, tokens, new):
    resid, cache = decoding.prefill(
      model.model, params, tokens, jnp.array(LENGTHS), N_NEW, edits,
      shared=shared,
    )  # fmt: skip
    first = resid

    def one(cache, token):
      resid, cache = decoding.step(model.model, params, token, cache, edits)
      return cache, resid

    cache, rest = jax.lax.scan(one, cache, new.T)
    resid = jnp.concatenate([first[None], rest]).swapaxes(0, 1)
    return unembed(model.model, params, resid), cache

  return logits(model.params, edits, jnp.asarray(tokens), jnp.asarray(new))


@pytest.mark.parametrize(
  ("family", "edited"), [("gpt2", False), *((name, True) for name in MODELS)]
)
def test_each_step_has_the_logits_of_a_whole_forward(x64, family, edited):
  config = MODELS[family]
  model, _ = random_model(config)
  edits = edits_of(config) if edited else Edits()
  tokens, new, whole = rows(config)
  found, cache = with_cache(model, tokens, new, edits, shared=True)
  assert cache.k.shape[3] == config.n_kv_heads
  check_rows(model, found, whole, edits)
  check_cache(cache)


def check_rows(model, found, whole, edits):
  resid, _ = run(model.model, model.params, jnp.asarray(whole), edits)
  wanted = np.asarray(unembed(model.model, model.params, resid))
  for row, n in enumerate(LENGTHS):
    np.testing.assert_allclose(
      found[row], wanted[row, n - 1 : n + N_NEW], rtol=0, atol=1e-10
    )


def check_cache(cache):
  assert list(cache.n_tokens) == [n + N_NEW for n in LENGTHS]
  assert int(cache.n_slots) == max(LENGTHS) + N_NEW
  valid = np.asarray(cache.context.key_valid)
  for row, n in enumerate(LENGTHS):
    positions = np.asarray(cache.context.positions)[row, valid[row]]
    assert list(positions) == list(range(n + N_NEW))


@pytest.mark.parametrize("family", ["llama_windows", "screening"])
def test_keys_of_one_query_head_are_cached_apart(x64, family):
  config = MODELS[family]
  model, _ = random_model(config)
  edits = edits_of_keys(config)
  tokens, new, whole = rows(config)
  found, cache = with_cache(model, tokens, new, edits, shared=False)
  assert cache.k.shape[3] == config.n_heads
  check_rows(model, found, whole, edits)
