"""Is the forward the oracle's, blind to padding and to the future?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from helpers import (
  FAMILIES,
  GPT2,
  LLAMA,
  PUBLIC,
  random_model,
  random_tokens,
)

from headjax.models import weights
from headjax.models.decoder import run, unembed, unembed_tokens
from headjax.models.sites import Edit, Edits

N_POS = 9
READ = ("resid_pre", "q", "k", "v", "pattern", "z", "attn_out", "mlp_out")
SCALE = {"tracr": 0.15}
ALL = FAMILIES | PUBLIC


def family(name, dtype="float64"):
  return random_model(ALL[name], scale=SCALE.get(name, 0.4), dtype=dtype)


@pytest.mark.parametrize("name", ALL)
def test_forward_is_the_oracle_s(x64, name):
  model, w = family(name)
  tokens = random_tokens(model.config, (2, N_POS))
  resid, acts = run(model.model, model.params, jnp.asarray(tokens))
  logits = unembed(model.model, model.params, resid)
  assert logits.dtype == "float64"
  for b in range(2):
    want, want_logits, seen = oracle.forward(model.config, w, tokens[b])
    np.testing.assert_allclose(resid[b], want, rtol=0, atol=1e-10)
    np.testing.assert_allclose(logits[b], want_logits, rtol=0, atol=1e-10)
    assert seen.keys() - set(READ) == (
      {"router_logits", "router_weights"} if "olmoe" in name else set()
    )
    for site in seen:
      got = getattr(acts, site)[:, b]
      np.testing.assert_allclose(got, seen[site], rtol=0, atol=1e-10)


@pytest.mark.parametrize("mlp", ["gelu", "relu", "none"])
def test_other_mlps_are_the_oracle_s(x64, mlp):
  width = 0 if mlp == "none" else GPT2.d_mlp
  config = dataclasses.replace(
    GPT2, mlp=mlp, d_mlp=width, positions="none", windows=(0, 2, 5)
  )
  model, w = random_model(config)
  tokens = random_tokens(config, (1, N_POS))
  resid, _ = run(model.model, model.params, jnp.asarray(tokens))
  want, _, _ = oracle.forward(config, w, tokens[0])
  np.testing.assert_allclose(resid[0], want, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["gpt2", "gemma2", "olmo2"])
def test_stream_is_the_sum_of_what_was_written(name):
  model, _ = family(name, "float32")
  tokens = jnp.asarray(random_tokens(GPT2, (2, N_POS)))
  resid, acts = run(model.model, model.params, tokens)
  np.testing.assert_array_equal(acts.resid_post[-1], resid)
  np.testing.assert_array_equal(acts.resid_post[:-1], acts.resid_pre[1:])
  np.testing.assert_array_equal(acts.resid_mid, acts.resid_pre + acts.attn_out)
  np.testing.assert_array_equal(acts.resid_post, acts.resid_mid + acts.mlp_out)


def test_halves_of_a_parallel_block_read_the_same_stream():
  model, _ = family("neox", "float32")
  tokens = jnp.asarray(random_tokens(GPT2, (2, N_POS)))
  resid, acts = run(model.model, model.params, tokens)
  assert acts.resid_mid is None
  both = acts.resid_pre + acts.attn_out + acts.mlp_out
  np.testing.assert_array_equal(acts.resid_post, both)
  np.testing.assert_array_equal(acts.resid_post[-1], resid)


def padded(tokens, side, config):
  """The tokens with three wrong ones before or after, and the mask."""
  junk = random_tokens(config, (len(tokens), 3), seed=9)
  line = np.arange(tokens.shape[1] + 3)
  if side == "left":
    tokens, positions = np.hstack([junk, tokens]), np.maximum(line - 3, 0)
    valid, real = line >= 3, slice(3, None)
  else:
    tokens, positions = np.hstack([tokens, junk]), line
    valid, real = line < line.size - 3, slice(0, -3)
  many = (len(tokens), 1)
  return (
    jnp.asarray(tokens),
    jnp.asarray(np.tile(positions, many)),
    jnp.asarray(np.tile(valid, many)),
    real,
  )


def padding_error(name, side, dtype):
  model, _ = family(name, dtype)
  tokens = random_tokens(model.config, (2, N_POS))
  want, _ = run(model.model, model.params, jnp.asarray(tokens))
  tokens, positions, valid, real = padded(tokens, side, model.config)
  got, _ = run(
    model.model, model.params, tokens, positions=positions, key_valid=valid
  )
  return np.abs(got[:, real] - want).max() / np.abs(want).max()


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
  "name", ["gpt2", "llama_windows", "tracr", "neox", "gemma2", "olmoe"]
)
def test_padding_on_either_side_changes_nothing(x64, name, side):
  assert padding_error(name, side, "float64") < 1e-10


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_only_the_last_bits_in_float32(side):
  assert padding_error("llama_kv2", side, "float32") < 1e-5


@pytest.mark.parametrize("name", ["gpt2", "llama_windows"])
def test_gradient_in_later_tokens_is_exactly_zero(x64, name):
  model, _ = family(name)
  tokens = jnp.asarray(random_tokens(model.config, (1, N_POS)))
  delta = jnp.zeros((model.config.n_layers, 1, N_POS, model.config.d_model))
  first = jnp.zeros_like(delta[..., :1]).at[0].set(1)

  @jax.jit
  def gradient(at):
    def score(delta):
      # resid_pre + gate * delta, at the first layer: a change of embeddings.
      own = run(model.model, model.params, tokens)[1].resid_pre
      edits = Edits(
        resid_pre=(Edit(first, jax.lax.stop_gradient(own) + delta),)
      )
      return run(model.model, model.params, tokens, edits)[0][0, at].sum()

    return jnp.abs(jax.grad(score)(delta)[0, 0]).max(-1)

  for at in (0, 3, N_POS - 1):
    reach = gradient(at)
    assert (reach[at + 1 :] == 0).all()
    assert (reach[max(0, at - 2) : at + 1] > 0).all()


def test_gradient_reaches_the_future_without_causality(x64):
  model, _ = family("tracr")
  tokens = jnp.asarray(random_tokens(model.config, (1, N_POS)))
  other = tokens.at[0, -1].add(1)
  a, b = (run(model.model, model.params, t)[0] for t in (tokens, other))
  assert np.abs(a - b)[0, 0].max() > 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["gpt2", "neox", "qwen2"])
def test_huge_negative_scores_cannot_undercut_the_mask(name, dtype):
  config = ALL[name]
  if name != "gpt2":  # turning keys by different angles changes the sign
    config = dataclasses.replace(config, rotary_theta=1e30)
  model, w = random_model(config, dtype="float32")
  # Keys that are minus the queries: every allowed score is below -1e5.
  w = {k: np.asarray(v, np.float32) for k, v in w.items()}
  w["W_Q"], w["W_K"] = w["W_Q"] * 0, w["W_K"] * 0
  w["b_Q"], w["b_K"] = 0 * w["b_Q"] + 1e3, 0 * w["b_K"] - 1e3
  params = weights.pack(config, w, "huge")
  params = jax.tree.map(lambda x: jnp.asarray(x, dtype), params)
  tokens = jnp.asarray(random_tokens(GPT2, (2, N_POS)))
  _, acts = run(model.model, params, tokens)
  assert (acts.scores < -1e5).all()
  assert (np.triu(np.asarray(acts.pattern, float), 1) == 0).all()
  np.testing.assert_allclose(
    np.asarray(acts.pattern, float).sum(-1), 1, atol=2e-2
  )


def test_no_edit_of_scores_shows_a_query_its_future():
  model, _ = family("gpt2", "float32")
  tokens = jnp.asarray(random_tokens(GPT2, (1, N_POS)))
  for value in (1e30, -1e30):
    ones = jnp.ones((3, 1, 1, 1, 1))
    edits = Edits(scores=(Edit(ones, value * ones),))
    _, acts = run(model.model, model.params, tokens, edits)
    assert (np.triu(acts.pattern, 1) == 0).all()


@pytest.mark.parametrize("name", ["gpt2", "llama_kv2", "gemma2"])
def test_single_logits_are_columns_of_the_unembedding(x64, name):
  model, _ = family(name)
  rng = np.random.default_rng(0)
  resid = jnp.asarray(rng.normal(size=(2, 5, model.config.d_model)))
  tokens = jnp.asarray(random_tokens(model.config, (2, 5)))
  whole = unembed(model.model, model.params, resid)
  want = jnp.take_along_axis(whole, tokens[..., None], -1)[..., 0]
  got = unembed_tokens(model.model, model.params, resid, tokens)
  np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("site", ["k", "v"])
@pytest.mark.parametrize(
  "name",
  ["llama_kv1", "llama_kv2", "qwen2", "gemma2", "olmo", "olmo2", "olmoe"],
)
def test_editing_one_query_head_s_key_leaves_its_group_alone(name, site):
  model, _ = family(name, "float32")
  tokens = jnp.asarray(random_tokens(model.config, (2, N_POS)))
  gate = jnp.zeros((3, 1, 1, 4, 1)).at[1, :, :, 1].set(1)
  value = jnp.asarray(
    np.random.default_rng(0).normal(size=(3, 2, N_POS, 4, 6)), jnp.float32
  )

  @jax.jit
  def z(gate):
    edits = Edits(**{site: (Edit(gate, value),)})
    return run(model.model, model.params, tokens, edits)[1].z[1]

  clean, edited = z(0 * gate), z(gate)
  others = np.array([0, 2, 3])
  np.testing.assert_array_equal(edited[:, :, others], clean[:, :, others])
  assert np.abs(edited[:, :, 1] - clean[:, :, 1]).max() > 1e-2


def compiled(read):
  """The program that reads some of the forward's outcome."""
  model, _ = family("gpt2", "float32")
  tokens = jnp.zeros((4, N_POS), int)
  return (
    jax.jit(lambda p, t: read(*run(model.model, p, t)))
    .lower(model.params, tokens)
    .compile()
  )


def test_activations_that_nobody_reads_cost_nothing():
  last = compiled(lambda resid, acts: resid)
  everything = compiled(lambda resid, acts: (resid, acts))
  one = compiled(lambda resid, acts: (resid, acts.z))

  def n_bytes(program):
    memory = program.memory_analysis()
    return memory.temp_size_in_bytes + memory.output_size_in_bytes

  z = 3 * 4 * N_POS * 4 * 5 * 4
  assert n_bytes(one) - n_bytes(last) < 2 * z
  assert n_bytes(everything) - n_bytes(last) > 10 * z
  # Nothing of the stacked scores [layer, batch, head, query, key] is left.
  assert f"3,4,4,{N_POS},{N_POS}" in everything.as_text()
  assert f"3,4,4,{N_POS},{N_POS}" not in last.as_text()


@pytest.mark.parametrize("shape", [(1, 13), (5,), (1, 2, 3)])
def test_tokens_that_do_not_fit_are_refused(shape):
  model, _ = family("gpt2", "float32")
  with pytest.raises(ValueError, match="^tokens: got shape") as error:
    run(model.model, model.params, jnp.zeros(shape, int))
  assert "\n" not in str(error.value)


def test_one_layer_is_enough(x64):
  config = dataclasses.replace(LLAMA, n_layers=1, windows=(2,))
  model, w = random_model(config)
  tokens = random_tokens(config, (1, 5))
  resid, _ = run(model.model, model.params, jnp.asarray(tokens))
  want, _, _ = oracle.forward(config, w, tokens[0])
  np.testing.assert_allclose(resid[0], want, rtol=0, atol=1e-10)
