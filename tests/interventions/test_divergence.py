"""Is the divergence right, for small and large changes and in pieces?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import GPT2, LLAMA, random_model

from headjax.interventions import divergence
from headjax.interventions.divergence import NegativeKL
from headjax.models.decoder import unembed

CONFIGS = {"tied": GPT2, "untied": LLAMA}


def streams(model, change, dtype):
  """A stream, and another one so far from it, `[4, d_model]` each."""
  rng = np.random.default_rng(0)
  clean, other = rng.normal(size=(2, 4, model.config.d_model))
  return jnp.asarray(clean, dtype), jnp.asarray(clean + change * other, dtype)


def by_definition(model, clean, patched):
  """`[4]`, from the whole of both predictions in double precision."""
  with jax.enable_x64(True):
    params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), model.params)
    log_p, log_q = (
      np.asarray(jax.nn.log_softmax(unembed(model.model, params, x)))
      for x in (clean.astype(jnp.float64), patched.astype(jnp.float64))
    )
  return (np.exp(log_p) * (log_p - log_q)).sum(-1)


@pytest.mark.parametrize("piece", [7, 8, 1024])
@pytest.mark.parametrize("name", CONFIGS)
def test_pieces_that_do_not_fit_the_vocabulary(monkeypatch, name, piece):
  monkeypatch.setattr(divergence, "PIECE", piece)
  model, _ = random_model(CONFIGS[name], dtype="float32")
  clean, patched = streams(model, 1.0, jnp.float32)
  found = -NegativeKL(clean)(model.model, model.params, patched)
  want = by_definition(model, clean, patched)
  np.testing.assert_allclose(found, want, rtol=1e-5)


@pytest.mark.parametrize(
  ("change", "scale"), [(1e-3, 1), (1e-3, 10), (0.1, 1), (30, 1), (30, 300)]
)
def test_small_and_large_changes(change, scale):
  model, _ = random_model(GPT2, dtype="float32")
  table = scale * model.params["embed"]["W_E"]
  params = model.params | {"embed": model.params["embed"] | {"W_E": table}}
  model = dataclasses.replace(model, params=params)
  clean, patched = streams(model, change, jnp.float32)
  found = -NegativeKL(clean)(model.model, params, patched)
  want = by_definition(model, clean, patched)
  np.testing.assert_allclose(found, want, rtol=2e-3, atol=1e-12)
  assert (found >= 0).all()
  assert found.max() > 1e-9


def test_divergence_from_itself_is_exactly_zero():
  model, _ = random_model(GPT2, dtype="float32")
  clean, patched = streams(model, 1.0, jnp.float32)

  @jax.jit
  def value(clean, patched):
    return NegativeKL(clean)(model.model, model.params, patched)

  assert (value(clean, clean) == 0).all()
  assert (value(clean, patched) < 0).all()


def test_its_gradient_is_that_of_the_definition(x64):
  model, _ = random_model(GPT2)
  clean, patched = streams(model, 0.5, jnp.float64)

  def plain(resid):
    log_p, log_q = (
      jax.nn.log_softmax(unembed(model.model, model.params, x))
      for x in (clean, resid)
    )
    return (jnp.exp(log_p) * (log_p - log_q)).sum()

  def ours(resid):
    return -NegativeKL(clean)(model.model, model.params, resid).sum()

  np.testing.assert_allclose(
    jax.grad(ours)(patched), jax.grad(plain)(patched), atol=1e-9
  )
