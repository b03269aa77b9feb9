"""Do loaded models compute what transformers computes from the same folder?

`fixtures/make_huggingface.py` made the folders and the expected values.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fixture_folders import COMPUTED, FEW, FIXTURES

from headjax.models.decoder import run, unembed
from headjax.models.load import load_model


@pytest.fixture(params=COMPUTED)
def folder(request):
  return FIXTURES / request.param


@pytest.fixture(params=FEW)
def one(request):
  return FIXTURES / request.param


def forward(folder, dtype):
  """Logits, and the stream after every layer, from a folder."""
  loaded = load_model(folder, dtype=dtype)
  with np.load(folder / "expected.npz", allow_pickle=False) as file:
    expected = dict(file)
  resid, activations = run(
    loaded.model, loaded.params, jnp.asarray(expected["tokens"])
  )
  logits = unembed(loaded.model, loaded.params, resid)
  assert logits.dtype == dtype
  streams = [*activations.resid_pre[1:], resid]
  return np.asarray(logits), np.stack(streams), expected


def test_float32_logits_are_those_of_transformers(folder):
  logits, _, expected = forward(folder, "float32")
  np.testing.assert_allclose(logits, expected["logits"], rtol=0, atol=5e-5)


def test_float32_residual_of_every_layer_is_that_of_transformers(one):
  _, resid, expected = forward(one, "float32")
  for got, want in zip(resid, expected["resid"], strict=True):
    assert np.abs(got - want).max() < 1e-5 * np.abs(want).max()


def test_float64_agrees_to_ten_digits(one):
  with jax.enable_x64(True):
    logits, resid, expected = forward(one, "float64")
  np.testing.assert_allclose(logits, expected["logits_64"], rtol=0, atol=1e-10)
  np.testing.assert_allclose(resid, expected["resid_64"], rtol=0, atol=1e-10)


def junk_on(side, tokens):
  """The tokens with three wrong ones on a side, and what `run` is told."""
  n_pos = tokens.shape[1]
  line = np.arange(n_pos + 3)
  wrong = np.full((len(tokens), 3), 7, tokens.dtype)
  if side == "left":
    real, positions = line >= 3, np.maximum(line - 3, 0)
    tokens = np.hstack([wrong, tokens])
  else:
    real, positions = line < n_pos, line
    tokens = np.hstack([tokens, wrong])
  told = [np.tile(x, (len(tokens), 1)) for x in (positions, real)]
  return jnp.asarray(tokens), *map(jnp.asarray, told), real


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_only_the_last_bits(one, side):
  loaded = load_model(one)
  with np.load(one / "expected.npz", allow_pickle=False) as file:
    tokens, want = file["tokens"], file["logits"]
  tokens, positions, valid, real = junk_on(side, tokens)
  resid, _ = run(
    loaded.model, loaded.params, tokens, positions=positions, key_valid=valid
  )
  logits = unembed(loaded.model, loaded.params, resid)[:, real]
  scale = np.abs(want).max()
  assert np.abs(logits - want).max() < 1e-5 * scale


@pytest.mark.parametrize("name", ["olmoe", "olmoe_normed"])
def test_every_token_has_the_experts_that_transformers_chose(name):
  loaded = load_model(FIXTURES / name)
  with np.load(FIXTURES / name / "expected.npz", allow_pickle=False) as file:
    expected = dict(file)
  tokens = jnp.asarray(expected["tokens"])
  _, acts = run(loaded.model, loaded.params, tokens)
  weights = np.asarray(acts.router_weights)
  assert ((weights > 0).sum(-1) == 2).all()
  chosen = np.argsort(-weights, axis=-1)[..., :2]
  np.testing.assert_array_equal(np.sort(chosen, -1), expected["chosen"])
  assert len(np.unique(expected["chosen"])) == 5, "all experts are used"
  np.testing.assert_allclose(
    acts.router_logits, expected["router"], rtol=0, atol=5e-5
  )
  sums = weights.sum(-1)
  np.testing.assert_array_equal(
    np.abs(sums - 1) < 1e-5, np.full(sums.shape, name == "olmoe_normed")
  )


@pytest.mark.slow
def test_bfloat16_is_as_near_to_float64_as_that_of_transformers(one):
  logits, _, expected = forward(one, "bfloat16")
  exact = expected["logits_64"]
  ours, theirs = (
    np.abs(np.asarray(found, float) - exact).mean()
    for found in (logits, expected["logits_16"])
  )
  assert ours < 1.5 * theirs + 1e-3


def test_heads_matter_in_the_fixtures(folder):
  """Parity would prove little if attention hardly wrote to the stream."""
  loaded = load_model(folder)
  with np.load(folder / "expected.npz", allow_pickle=False) as file:
    tokens = jnp.asarray(file["tokens"])
  _, activations = run(loaded.model, loaded.params, tokens)
  written = jnp.square(activations.attn_out).mean((1, 2, 3))
  stream = jnp.square(activations.resid_pre).mean((1, 2, 3))
  assert (written > 0.02 * stream).all()
  assert (activations.pattern.max(-1).mean((1, 2, 3)) < 0.95).all()
