"""Does an edit change its site, its site alone, and nothing when it is shut?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import GPT2, LLAMA, PUBLIC, random_model, random_tokens
from one_line import refusal
from slow_params import slow_but

from headjax.models.config import ModelConfig
from headjax.models.decoder import run
from headjax.models.sites import SITES, Edit, Edits, LinearEdit, available

FAMILIES = {"gpt2": GPT2, "llama": LLAMA} | {
  name: PUBLIC[name] for name in ("neox", "gemma2", "olmoe")
}
BATCH, N_POS = 2, 7


def shape_of(config: ModelConfig, site: str) -> tuple[int, ...]:
  heads, d_head = config.n_heads, config.d_head
  if site in ("q", "k", "v", "z"):
    return (config.n_layers, BATCH, N_POS, heads, d_head)
  if site in ("scores", "pattern"):
    return (config.n_layers, BATCH, heads, N_POS, N_POS)
  width = config.n_experts if site.startswith("router") else config.d_model
  return (config.n_layers, BATCH, N_POS, width)


def sites_of(config):
  return [site for site, lacking in available(config).items() if not lacking]


def shut(value):
  """An edit of that value whose gate is closed in every layer."""
  gate = jnp.zeros((value.shape[0],) + (1,) * (value.ndim - 1))
  return Edit(gate, value)


def opened(value):
  return shut(value).replace(gate=shut(value).gate + 1)


@pytest.fixture(
  scope="module", params=slow_but(["gpt2", "gemma2", "olmoe"], FAMILIES)
)
def setting(request):
  """A float32 model, a forward in which every site has an edit, shut unless
  given, and the activations without any edit."""
  config = FAMILIES[request.param]
  model, _ = random_model(config, dtype="float32")
  tokens = jnp.asarray(random_tokens(config, (BATCH, N_POS)))
  idle = {
    site: (shut(noise(shape_of(config, site))),) for site in sites_of(config)
  }

  def forward(**edits):
    edits = Edits(**(idle | edits))
    return jax.tree.map(
      np.asarray, run(model.model, model.params, tokens, edits)
    )

  clean = run(model.model, model.params, tokens)
  return model, tokens, forward, jax.tree.map(np.asarray, clean)


def edits_of(site, *edits):
  return Edits(**{site: edits})


def noise(shape, seed=0):
  return jnp.asarray(np.random.default_rng(seed).normal(size=shape), "float32")


def assert_same(a, b):
  for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
    np.testing.assert_array_equal(x, y)


def gate_rows(model, tokens, site, value):
  """Forwards with all gates shut, without any gate open, and open, as rows."""
  shape = (model.config.n_layers,) + (1,) * (value.ndim - 1)
  gates = jnp.stack([jnp.zeros(shape), jnp.ones(shape), jnp.zeros(shape)])

  @jax.jit
  def rows(value):
    def one(gate):
      return run(
        model.model, model.params, tokens, edits_of(site, Edit(gate, value))
      )

    return jax.vmap(one)(gates)

  return jax.tree.map(np.asarray, rows(value))


def row(tree, i):
  return jax.tree.map(lambda x: x[i], tree)


def test_shut_gates_at_every_site_change_no_bit(setting):
  _, _, forward, clean = setting
  assert_same(forward(), clean)


@pytest.mark.parametrize("site", SITES)
def test_open_gate_replaces_its_site_and_changes_the_output(setting, site):
  model, _, forward, (resid, _) = setting
  if site not in sites_of(model.config):
    return
  value = noise(shape_of(model.config, site), seed=1)
  edited, acts = forward(**{site: (opened(value),)})
  assert np.abs(edited - resid).max() > 1e-3
  np.testing.assert_array_equal(getattr(acts, site), value)


@pytest.mark.parametrize("site", SITES)
def test_own_value_changes_no_bit(setting, site):
  model, _, forward, clean = setting
  value = getattr(clean[1], site)
  if value is None:
    assert site not in sites_of(model.config)
    return
  assert value.shape == shape_of(model.config, site)
  assert_same(forward(**{site: (opened(jnp.asarray(value)),)}), clean)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_shut_and_own_value_rows_of_one_batch_are_bit_identical(family):
  model, _ = random_model(FAMILIES[family], dtype="float32")
  tokens = jnp.asarray(random_tokens(model.config, (BATCH, N_POS)))
  noisy = gate_rows(model, tokens, "z", noise(shape_of(model.config, "z")))
  assert_same(row(noisy, 0), row(noisy, 2))
  own = gate_rows(model, tokens, "z", row(noisy, 0)[1].z)
  assert_same(row(own, 0), row(noisy, 0))
  assert_same(row(own, 1)[0], row(own, 0)[0])
  assert np.abs(noisy[0][1] - noisy[0][0]).max() > 1e-3


def test_edit_at_one_layer_leaves_earlier_layers_alone(setting):
  model, _, forward, (_, clean) = setting
  gate = jnp.zeros((3, 1, 1, 1, 1)).at[1].set(1)
  _, acts = forward(z=(Edit(gate, noise((3, 1, 1, 1, 1))),))
  for site in sites_of(model.config):
    a, b = getattr(acts, site), getattr(clean, site)
    np.testing.assert_array_equal(a[0], b[0])
    assert np.abs(a[2] - b[2]).max() > 0, site


def test_edit_of_one_head_leaves_the_layer_s_other_heads_alone(setting):
  model, _, forward, (_, clean) = setting
  gate = jnp.zeros((3, 1, 1, model.config.n_heads, 1)).at[1, ..., 1, :].set(1)
  _, acts = forward(z=(Edit(gate, noise((3, 1, 1, 1, 1))),))
  np.testing.assert_array_equal(acts.z[1, :, :, 0], clean.z[1, :, :, 0])
  assert np.abs(acts.z[1, :, :, 1] - clean.z[1, :, :, 1]).max() > 1e-3


def test_edits_apply_in_order(setting):
  _, _, forward, (_, clean) = setting
  gate = jnp.ones((3, 1, 1, 1, 1))
  half, two = Edit(gate / 2, 0 * gate), Edit(gate, 2 * gate)
  _, first = forward(z=(half, two))
  _, last = forward(z=(two, half))
  np.testing.assert_array_equal(first.z, jnp.full_like(clean.z, 2))
  np.testing.assert_array_equal(last.z, jnp.ones_like(clean.z))


def test_half_open_gate_blends(setting):
  _, _, forward, (_, clean) = setting
  value = noise(clean.attn_out.shape)
  gate = jnp.full((3, 1, 1, 1), 0.25)
  _, acts = forward(attn_out=(Edit(gate, value),))
  want = 0.75 * clean.attn_out[0] + 0.25 * value[0]
  np.testing.assert_allclose(acts.attn_out[0], want, rtol=1e-5, atol=1e-6)


def test_linear_edit_adds_its_product(setting):
  model, _, forward, (_, clean) = setting
  heads, d_head = model.config.n_heads, model.config.d_head
  matrix = noise((3, heads, d_head, d_head))
  gate = jnp.zeros((3, 1, 1, heads, 1)).at[0, ..., 1, :].set(0.5)
  _, acts = forward(z=(LinearEdit(gate, matrix),))
  want = np.array(clean.z[0])
  want[:, :, 1] += 0.5 * want[:, :, 1] @ np.asarray(matrix[0, 1])
  np.testing.assert_allclose(acts.z[0], want, rtol=1e-5, atol=1e-5)
  np.testing.assert_array_equal(acts.z[0, :, :, 0], clean.z[0, :, :, 0])


def test_one_matrix_a_layer_serves_every_position(setting):
  model, _, forward, (_, clean) = setting
  matrix = noise((3, model.config.d_model, model.config.d_model))
  gate = jnp.ones((3, 1, 1, 1))
  _, acts = forward(resid_pre=(LinearEdit(gate, matrix),))
  want = clean.resid_pre[0] + clean.resid_pre[0] @ matrix[0]
  np.testing.assert_allclose(acts.resid_pre[0], want, rtol=1e-4, atol=1e-4)


def test_float64_value_does_not_change_the_model_s_type(x64):
  model, _ = random_model(GPT2, dtype="float32")
  tokens = jnp.asarray(random_tokens(GPT2, (1, 4)))
  edit = Edit(jnp.ones((3, 1, 1, 1)), jnp.ones((3, 1, 1, 1)))
  resid, _ = run(model.model, model.params, tokens, edits_of("mlp_out", edit))
  assert edit.value.dtype == "float64" and resid.dtype == "float32"


def test_nan_leaks_through_a_shut_gate(setting):
  """The reason why the builders refuse values that are not finite."""
  _, _, forward, _ = setting
  gate = jnp.zeros((3, 1, 1, 1))
  resid, _ = forward(attn_out=(Edit(gate, gate + jnp.nan),))
  assert np.isnan(resid).all()


@pytest.mark.parametrize(
  "gate, value",
  [
    ((3, 1, 1, 1, 1), (3, 5, N_POS, 1, 1)),
    ((3, 1, 1, 1, 1, 1), (3, 1, 1, 1, 1)),
    ((2, 1, 1, 1, 1), (2, 1, 1, 1, 1)),
    ((), (3, 1, 1, 1, 1)),
  ],
)
def test_edit_that_does_not_fit_is_refused(gate, value):
  model, _ = random_model(GPT2, dtype="float32")
  tokens = jnp.zeros((1, N_POS), int)
  edits = edits_of("z", Edit(jnp.ones(gate), jnp.ones(value)))
  with pytest.raises(ValueError, match="edit") as error:
    run(model.model, model.params, tokens, edits)
  assert "\n" not in str(error.value)


@pytest.mark.parametrize(
  ("name", "site", "why"),
  [
    ("gpt2", "router_logits", "without experts"),
    ("gemma2", "router_weights", "without experts"),
    ("neox", "resid_mid", "parallel"),
  ],
)
def test_edit_of_a_site_that_a_model_lacks_is_refused(name, site, why):
  model, _ = random_model(FAMILIES[name], dtype="float32")
  edit = Edit(jnp.ones((3, 1, 1, 1)), jnp.ones((3, 1, 1, 1)))
  with refusal(f"edits.{site}: got an edit", why, "resid_pre, q, k, v"):
    run(model.model, model.params, jnp.zeros((1, 3), int), edits_of(site, edit))


def test_edit_of_the_mlp_is_refused_in_a_model_without_one():
  config = dataclasses.replace(GPT2, mlp="none", d_mlp=0, mlp_bias=False)
  model, _ = random_model(config, dtype="float32")
  edit = Edit(jnp.ones((3, 1, 1, 1)), jnp.ones((3, 1, 1, 1)))
  with pytest.raises(ValueError, match="^edits.mlp_out: "):
    run(
      model.model, model.params, jnp.zeros((1, 3), int),
      edits_of("mlp_out", edit),
    )  # fmt: skip
