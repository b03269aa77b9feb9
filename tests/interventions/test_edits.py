"""Does each builder write the edit that its name promises?"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import GPT2, LLAMA

from headjax.interventions import edits
from headjax.interventions.edits import HEAD_AXIS
from headjax.models.sites import SITES, Edit, LinearEdit


def noise(*shape):
  return jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)


def applied(changes, site, x):
  """The site's edits on its stacked activation, a layer at a time."""
  for edit in getattr(changes, site):
    x = jax.vmap(lambda edit, x: edit(x))(edit, x)
  return np.asarray(x)


def assert_only(changes, site):
  for name in SITES:
    assert len(getattr(changes, name)) == (name == site)


@pytest.mark.parametrize("site", SITES)
def test_zero_ablation_leaves_nothing(site):
  shape = (3, 2, 4, 4, 5) if site in HEAD_AXIS else (3, 2, 4, 16)
  changes = edits.zero(GPT2, site)
  assert_only(changes, site)
  assert (applied(changes, site, noise(*shape)) == 0).all()


@pytest.mark.parametrize("site", HEAD_AXIS)
def test_each_head_gate_opens_one_head(site):
  gates = edits.head_gates(GPT2, site)
  assert gates.shape[:2] == (12, 3)
  shape = (3, 2, 6, 4, 5) if HEAD_AXIS[site] == 3 else (3, 2, 4, 6, 6)
  x = noise(*shape)
  (edit,) = getattr(edits.zero(GPT2, site), site)
  for i, gate in enumerate(gates):
    y = applied(edits.Edits(**{site: (edit.replace(gate=gate),)}), site, x)
    zeroed = np.moveaxis(y == 0, HEAD_AXIS[site], 1).all((2, 3, 4))
    assert zeroed.sum() == 1 and zeroed[i // 4, i % 4]
    assert (y != 0).sum() == x.size * 11 // 12


def test_head_gates_need_a_site_with_heads():
  with pytest.raises(ValueError, match="^site: got 'attn_out'"):
    edits.head_gates(GPT2, "attn_out")


def test_patch_puts_the_value_where_the_gate_is_open():
  x, value = noise(3, 2, 4, 16), 5 + noise(3, 2, 4, 16)
  gate = jnp.zeros((3, 1, 4, 1)).at[1, 0, 2].set(1)
  y = applied(edits.patch_from("attn_out", value, gate), "attn_out", x)
  want = np.array(x)
  want[1, :, 2] = value[1, :, 2]
  np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_value_that_is_not_finite_is_refused(bad):
  with pytest.raises(ValueError, match="^value of z: got NaN") as error:
    edits.patch_from("z", noise(3, 1, 1, 4, 5).at[2, 0, 0, 1, 1].set(bad))
  assert "\n" not in str(error.value)


@pytest.mark.parametrize("gate", [-0.1, 1.5, np.nan])
def test_gate_outside_zero_to_one_is_refused(gate):
  with pytest.raises(ValueError, match="^gate: "):
    edits.zero(GPT2, "z", gate)
  with pytest.raises(ValueError, match="^gate: "):
    edits.zero(GPT2, "z", jnp.full((3, 1, 1, 1, 1), gate))


def test_unknown_site_is_refused():
  with pytest.raises(ValueError, match="^site: got 'resid'"):
    edits.patch_from("resid", noise(3, 1, 1, 16))


def test_mean_is_taken_over_valid_positions_only():
  x = noise(3, 2, 4, 4, 5)
  valid = jnp.array([[1, 1, 0, 0], [1, 1, 1, 0]], bool)
  changes = edits.mean("z", x, valid=valid)
  assert_only(changes, "z")
  want = np.asarray(x)[:, np.asarray(valid)].mean(1)
  got = applied(changes, "z", x)
  np.testing.assert_allclose(
    got, np.broadcast_to(want[:, None, None], x.shape), rtol=1e-5, atol=1e-6
  )


def test_mean_over_everything_is_the_default():
  x = noise(3, 2, 4, 16)
  got = applied(edits.mean("mlp_out", x), "mlp_out", x)[:, 0, 0]
  np.testing.assert_allclose(got, x.mean((1, 2)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("batch", [2, 3, 7])
def test_resampling_never_takes_an_example_from_itself(batch):
  x = jnp.arange(batch, dtype=jnp.float32).reshape(1, batch, 1, 1)
  x = jnp.broadcast_to(x, (3, batch, 2, 16))
  orders = set()
  for seed in range(20):
    changes = edits.resample("resid_pre", x, jax.random.key(seed))
    got = applied(changes, "resid_pre", x)[0, :, 0, 0].astype(int)
    assert (got != np.arange(batch)).all()
    assert sorted(got) == list(range(batch))
    orders.add(tuple(got))
  assert len(orders) > 1 or batch == 2


def test_resampling_needs_two_examples():
  with pytest.raises(ValueError, match="^activation: got 1 example"):
    edits.resample("z", noise(3, 1, 4, 4, 5), jax.random.key(0))


def test_projection_removes_the_subspace_and_nothing_else():
  basis = jnp.linalg.qr(noise(3, 16, 3))[0]
  x = noise(3, 2, 4, 16)
  changes = edits.project_out("resid_mid", basis)
  assert_only(changes, "resid_mid")
  assert isinstance(changes.resid_mid[0], LinearEdit)
  y = applied(changes, "resid_mid", x)
  inside = np.einsum("lbpd,ldk->lbpk", y, basis)
  np.testing.assert_allclose(inside, 0, atol=1e-5)
  # What was removed lies in the subspace.
  gone = x - y
  back = np.einsum("lbpd,ldk,lek->lbpe", gone, basis, basis)
  np.testing.assert_allclose(back, gone, atol=1e-5)
  assert np.abs(gone).max() > 0.1


def test_each_head_may_have_its_own_subspace():
  basis = jnp.linalg.qr(noise(3, 4, 6, 2))[0]
  x = noise(3, 2, 5, 4, 6)
  gate = jnp.zeros((3, 1, 1, 4, 1)).at[1, ..., 2, :].set(1)
  y = applied(edits.project_out("z", basis, gate), "z", x)
  inside = np.einsum("bpd,dk->bpk", y[1, :, :, 2], basis[1, 2])
  np.testing.assert_allclose(inside, 0, atol=1e-5)
  same = np.ones((3, 4), bool)
  same[1, 2] = False
  kept = np.moveaxis(y == x, 3, 1).all((2, 3, 4))
  np.testing.assert_array_equal(kept, same)


@pytest.mark.parametrize("scale", [1.01, 0.0, np.nan])
def test_basis_that_is_not_orthonormal_is_refused(scale):
  basis = jnp.linalg.qr(noise(3, 16, 2))[0] * scale
  with pytest.raises(ValueError, match="^basis of z: "):
    edits.project_out("z", basis)


def test_combined_edits_of_one_site_apply_in_the_order_given():
  x = noise(3, 2, 4, 4, 6)
  double = edits.patch_from("z", jnp.full((3, 1, 1, 1, 1), 2.0))
  half = edits.zero(LLAMA, "z", 0.5)
  other = edits.zero(LLAMA, "attn_out")
  both = edits.combine(double, other, half)
  assert [len(getattr(both, s)) for s in ("z", "attn_out", "q")] == [2, 1, 0]
  assert (applied(both, "z", x) == 1).all()
  assert (applied(edits.combine(half, double), "z", x) == 2).all()
  assert edits.combine() == edits.Edits()


def test_builders_return_plain_edits():
  (edit,) = edits.zero(GPT2, "z", 0.25).z
  assert isinstance(edit, Edit)
  assert edit.gate.shape == (3, 1, 1, 1, 1) and (edit.gate == 0.25).all()


def test_mean_of_a_pattern_is_refused():
  """Its second and third axes are not batch and position."""
  with pytest.raises(ValueError, match="^site: got 'pattern'"):
    edits.mean("pattern", noise(3, 2, 4, 6, 6))
