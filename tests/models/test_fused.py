"""Is attention for training the attention that analyses explain?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import FAMILIES, LLAMA, SCREENING, random_model
from one_line import refusal

from headjax.models.decoder import run
from headjax.models.sites import Edit, Edits

WINDOWS = dataclasses.replace(LLAMA, windows=(0, 3, 2))


@pytest.fixture(params=["cpu", "tpu"])
def backend(request, monkeypatch):
  """The route of a backend; the other one runs on this machine as well."""
  jax.clear_caches()
  calls, attention = [], jax.nn.dot_product_attention

  def spy(*args, **kwargs):
    calls.append(args)
    return attention(*args, **kwargs)

  monkeypatch.setattr(jax.nn, "dot_product_attention", spy)
  monkeypatch.setattr(jax, "default_backend", lambda: request.param)
  yield request.param
  assert bool(calls) == (request.param == "tpu")
  jax.clear_caches()


def tokens(config, n=3):
  rng = np.random.default_rng(0)
  return rng.integers(0, config.d_vocab, (n, config.n_ctx)).astype(np.int32)


def both(config, **context):
  model, _ = random_model(config)
  ids = tokens(config)
  explicit, _ = run(model.model, model.params, ids, **context)
  fused, seen = run(
    model.model, model.params, ids, **context, attention="fused"
  )
  return explicit, fused, seen


@pytest.mark.parametrize("name", ["gpt2", "llama_windows", "tracr"])
def test_fused_attention_gives_the_same_stream(name, backend, x64):
  explicit, fused, seen = both(FAMILIES[name])
  # JAX's own attention has its softmax in float32.
  tolerance = 1e-12 if backend == "cpu" else 1e-4
  np.testing.assert_allclose(fused, explicit, rtol=0, atol=tolerance)
  assert seen.scores is None and seen.pattern is None and seen.z is not None


@pytest.mark.parametrize("config", [LLAMA, WINDOWS], ids=["llama", "windows"])
def test_left_padding_is_left_out(config, backend, x64):
  pad = np.array([[0], [2], [5]])
  line = np.arange(config.n_ctx)[None]
  context = {
    "positions": jnp.asarray(np.maximum(line - pad, 0)),
    "key_valid": jnp.asarray(line >= pad),
  }
  explicit, fused, _ = both(config, **context)
  plain, _, _ = both(config)
  real = np.asarray(context["key_valid"])[..., None]
  tolerance = 1e-12 if backend == "cpu" else 1e-4
  difference = np.where(real, fused - explicit, 0)
  np.testing.assert_allclose(difference, 0, atol=tolerance)
  assert abs(explicit - plain)[1:].max() > 1e-3


def test_edits_of_what_is_not_there_are_refused():
  model, _ = random_model(LLAMA, dtype="float32")
  ids = tokens(LLAMA)
  for site in ("scores", "pattern"):
    gate = jnp.zeros((3, 1, 1, 1, 1))
    edits = Edits(**{site: (Edit(gate, gate),)})
    with refusal(f"edits.{site}: got an edit", "attention='fused'"):
      run(model.model, model.params, ids, edits, attention="fused")
  with refusal("attention: got 'flash'", "explicit, fused"):
    run(model.model, model.params, ids, attention="flash")


def test_other_edits_work_as_in_explicit_attention(x64):
  model, _ = random_model(LLAMA)
  ids = tokens(LLAMA)
  gate = jnp.zeros((3, 1, 1, 4, 1)).at[1, :, :, 2].set(1)
  edits = Edits(z=(Edit(gate, jnp.zeros((3, 1, 1, 1, 1))),))
  explicit, _ = run(model.model, model.params, ids, edits)
  fused, _ = run(model.model, model.params, ids, edits, attention="fused")
  plain, _ = run(model.model, model.params, ids)
  np.testing.assert_allclose(fused, explicit, rtol=0, atol=1e-12)
  assert abs(fused - plain).max() > 1e-3


def test_screening_has_no_fused_form_and_says_nothing(x64):
  explicit, fused, _ = both(SCREENING)
  np.testing.assert_array_equal(fused, explicit)
