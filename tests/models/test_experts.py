"""Do edits of the router decide which experts write, and under `vmap`?"""

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from helpers import PUBLIC, random_model, random_tokens

from headjax.models import weights
from headjax.models.decoder import run
from headjax.models.experts import Experts, choose
from headjax.models.sites import Edit, Edits

CONFIG = PUBLIC["olmoe"]
N_POS, E = 6, CONFIG.n_experts


@pytest.fixture(scope="module")
def setting():
  model, w = random_model(CONFIG, dtype="float32")
  tokens = jnp.asarray(random_tokens(CONFIG, (2, N_POS)))
  _, acts = run(model.model, model.params, tokens)
  return model, tokens, acts


def at_layer(layer, value):
  """An edit of one layer's router, at all positions."""
  value = jnp.broadcast_to(value, (3, 1, 1, E))
  return Edit(jnp.zeros((3, 1, 1, 1)).at[layer].set(1), value)


@pytest.mark.parametrize("name", ["olmoe", "olmoe_normed"])
def test_the_best_experts_are_chosen(name):
  logits = np.random.default_rng(0).normal(size=(50, E)) * 2
  found = choose(PUBLIC[name], jnp.asarray(logits, jnp.float32))
  want = [oracle.route(PUBLIC[name], row) for row in logits]
  np.testing.assert_allclose(found, want, rtol=0, atol=1e-6)


@pytest.mark.parametrize("lead", [(7,), (2, 3), (2, 3, 2)])
def test_any_leading_axes_are_rows(setting, lead):
  model, _, _ = setting
  params = weights.blocks(model.params)["mlp"]
  params = jax.tree.map(lambda leaf: leaf[0], params)
  shape = (*lead, CONFIG.d_model)
  x = jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)
  apply = jax.jit(lambda x: Experts(CONFIG).apply({"params": params}, x)[1])
  flat = apply(x.reshape(-1, CONFIG.d_model)).reshape(shape)
  np.testing.assert_allclose(apply(x), flat, rtol=1e-5, atol=1e-5)
  np.testing.assert_allclose(jax.vmap(apply)(x), flat, rtol=1e-5, atol=1e-5)


def test_a_logit_that_is_raised_makes_its_expert_chosen(setting):
  model, tokens, clean = setting
  raised = jnp.zeros((1, 1, 1, E)).at[..., 3].set(50.0)
  value = clean.router_logits + raised
  edit = Edit(jnp.zeros((3, 1, 1, 1)).at[1].set(1), value)
  _, acts = run(model.model, model.params, tokens, Edits(router_logits=(edit,)))
  assert (acts.router_weights[1, ..., 3] > 0.99).all()
  assert (clean.router_weights[1, ..., 3] == 0).any()
  np.testing.assert_array_equal(acts.mlp_out[0], clean.mlp_out[0])
  assert np.abs(acts.mlp_out[1] - clean.mlp_out[1]).max() > 1e-2


def test_weights_that_are_set_are_the_sum_of_their_experts(setting):
  """Also of more experts than the router would choose."""
  model, tokens, clean = setting
  alone = []
  for expert in range(E):
    one = at_layer(2, jax.nn.one_hot(expert, E))
    _, acts = run(
      model.model, model.params, tokens, Edits(router_weights=(one,))
    )
    alone.append(acts.mlp_out[2])
  share = jnp.array([0.5, -1.0, 0.25, 2.0, 0.0])
  _, acts = run(
    model.model, model.params, tokens,
    Edits(router_weights=(at_layer(2, share),)),
  )  # fmt: skip
  want = jnp.einsum("e,ebpd->bpd", share, jnp.stack(alone))
  np.testing.assert_allclose(acts.mlp_out[2], want, rtol=1e-4, atol=1e-4)


def test_a_vmap_over_gates_is_a_loop_over_them(setting):
  model, tokens, clean = setting
  edit = at_layer(0, jax.nn.one_hot(4, E))
  gates = jnp.stack([0 * edit.gate, 0.3 * edit.gate, edit.gate])

  @jax.jit
  def one(gate):
    edits = Edits(router_weights=(edit.replace(gate=gate),))
    return run(model.model, model.params, tokens, edits)[0]

  many = jax.vmap(one)(gates)
  for row, gate in zip(many, gates, strict=True):
    np.testing.assert_allclose(row, one(gate), rtol=1e-4, atol=1e-4)
  np.testing.assert_allclose(
    many[0], clean.resid_post[-1], rtol=1e-4, atol=1e-4
  )


def test_the_gradient_in_a_router_gate_is_the_slope(x64):
  model, _ = random_model(CONFIG)
  tokens = jnp.asarray(random_tokens(CONFIG, (1, N_POS)))
  edit = at_layer(1, jax.nn.one_hot(2, E) + 0.0)

  @jax.jit
  def score(level):
    edits = Edits(router_weights=(edit.replace(gate=level * edit.gate),))
    return run(model.model, model.params, tokens, edits)[0][0, -1].sum()

  slope = jax.grad(score)(0.25)
  step = 1e-5
  finite = (score(0.25 + step) - score(0.25 - step)) / (2 * step)
  assert abs(slope) > 1e-3
  np.testing.assert_allclose(slope, finite, rtol=1e-6)
