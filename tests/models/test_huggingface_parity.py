"""Do loaded models compute what transformers computes from the same folder?

`fixtures/make_huggingface.py` made the folders and the expected values.
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headjax.models.decoder import run, unembed
from headjax.models.load import load_model

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"
NAMES = ["gpt2_tied", "gpt2_untied", "llama_kv1", "llama_kv2", "llama_kv4"]


@pytest.fixture(params=NAMES)
def folder(request):
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


def test_float32_residual_of_every_layer_is_that_of_transformers(folder):
  _, resid, expected = forward(folder, "float32")
  for got, want in zip(resid, expected["resid"], strict=True):
    assert np.abs(got - want).max() < 1e-5 * np.abs(want).max()


def test_float64_agrees_to_ten_digits(folder):
  with jax.enable_x64(True):
    logits, resid, expected = forward(folder, "float64")
  np.testing.assert_allclose(logits, expected["logits_64"], rtol=0, atol=1e-10)
  np.testing.assert_allclose(resid, expected["resid_64"], rtol=0, atol=1e-10)


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
