"""Are screening models what the slow oracle and their equations say?"""

import dataclasses
import functools
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import screening_oracle
from helpers import GPT2, SCREENING, random_model, random_tokens

from headjax.geometry.designs import WriteDesign
from headjax.models import decoder, weights
from headjax.models.block import Block, layer_statics
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder, default_context, run
from headjax.models.layers import unit
from headjax.models.screening import tanh_norm
from headjax.models.sites import Edit, Edits
from headjax.models.softmax import KV, Context

FACTS = json.loads(
  (pathlib.Path(__file__).parents[1] / "reference" / "facts.json").read_text()
)
AXIS = WriteDesign("axis", scale=0.1)
N_POS = 9


def full_size(n_layers, n_heads, d_model, **kwargs):
  return ModelConfig(
    n_layers, n_heads, d_model, 64, 0, 50257, 1024,
    norm="none", positions="none", mlp="none", qkv_bias=False, out_bias=False,
    attention="screening", d_key=16, **kwargs,
  )  # fmt: skip


def forward(model, tokens, edits=Edits(), **kwargs):
  resid, acts = run(model.model, model.params, tokens, edits, **kwargs)
  return decoder.unembed(model.model, model.params, resid), acts


def n_params(config):
  return sum(int(np.prod(s)) for s in weights.shapes(config).values())


@pytest.mark.parametrize("write", [WriteDesign(), AXIS])
def test_forward_is_that_of_the_oracle(x64, write):
  config = dataclasses.replace(SCREENING, write=write)
  model, w = random_model(config)
  tokens = random_tokens(config, (2, N_POS))
  positions = np.stack([np.arange(N_POS), 2 + 2 * np.arange(N_POS)])
  valid = np.ones((2, N_POS), bool)
  valid[1, 3] = False
  logits, acts = forward(model, tokens, positions=positions, key_valid=valid)
  for b in range(2):
    _, want, record = screening_oracle.forward(
      config, w, tokens[b], positions[b], valid[b]
    )
    np.testing.assert_allclose(logits[b], want, rtol=0, atol=1e-10)
    for site, value in record.items():
      got = getattr(acts, site)[:, b]
      np.testing.assert_allclose(got, value, rtol=0, atol=1e-10, err_msg=site)


def test_some_windows_of_these_tests_turn_their_keys_and_some_do_not(x64):
  _, w = random_model(SCREENING)
  windows = np.exp(w["s_w"]) + 1
  limit = SCREENING.screening_window
  assert (windows < limit).any() and (windows > limit).any()


def test_pattern_rows_need_not_sum_to_one(x64):
  model, _ = random_model(SCREENING)
  _, acts = forward(model, random_tokens(SCREENING, (2, N_POS)))
  total = np.asarray(acts.pattern).sum(-1)
  assert total.min() == 0 and total.max() > 1.5
  assert np.abs(acts.scores).max() <= 1 + 1e-12


def test_head_whose_keys_all_fail_writes_exactly_nothing(x64):
  model, _ = random_model(SCREENING)
  _, acts = forward(model, random_tokens(SCREENING, (2, N_POS)))
  silent = np.asarray(acts.pattern.sum(-1) == 0)
  z = np.swapaxes(acts.z, 2, 3)
  assert silent.any() and (z[silent] == 0).all() and (z[~silent] != 0).any()


def test_gradient_of_a_row_reaches_only_itself_and_earlier_ones(x64):
  model, _ = random_model(SCREENING)
  tokens = random_tokens(SCREENING, (1, N_POS))
  shape = (SCREENING.n_layers, 1, N_POS, SCREENING.d_model)
  # A nudge of the first layer's stream.
  at_first = jnp.zeros((SCREENING.n_layers, 1, 1, 1)).at[0].set(1)

  @jax.jit
  @jax.jacobian
  def slopes(stream):
    edit = Edit(at_first, stream[None] * jnp.ones(shape))
    edits = Edits(resid_pre=(edit,))
    return run(model.model, model.params, tokens, edits)[0].sum((0, 2))

  stream = run(model.model, model.params, tokens)[1].resid_pre[0]
  reach = np.abs(slopes(stream)).sum((1, 3))
  later = np.triu(np.ones((N_POS, N_POS), bool), 1)
  assert (reach[later] == 0).all()
  assert (np.diag(reach, -1) > 0).all()


def test_only_relative_positions_matter(x64):
  model, _ = random_model(SCREENING)
  tokens = random_tokens(SCREENING, (2, N_POS))
  line = np.tile(np.arange(N_POS), (2, 1))
  logits, acts = forward(model, tokens)
  shifted, others = forward(model, tokens, positions=line + 37)
  np.testing.assert_allclose(shifted, logits, rtol=0, atol=1e-10)
  np.testing.assert_allclose(others.scores, acts.scores, rtol=0, atol=1e-10)
  stretched, _ = forward(model, tokens, positions=2 * line)
  assert np.abs(stretched - logits).max() > 1e-2


def test_padding_changes_nothing(x64):
  model, _ = random_model(SCREENING)
  tokens = random_tokens(SCREENING, (2, N_POS))
  logits, _ = forward(model, tokens)
  right = np.pad(tokens, ((0, 0), (0, 3)), constant_values=5)
  np.testing.assert_allclose(
    forward(model, right)[0][:, :N_POS], logits, rtol=0, atol=1e-12
  )
  left = np.pad(tokens, ((0, 0), (3, 0)), constant_values=5)
  line = np.tile(np.arange(-3, N_POS), (2, 1))
  padded, _ = forward(model, left, positions=line, key_valid=line >= 0)
  np.testing.assert_allclose(padded[:, 3:], logits, rtol=0, atol=1e-12)


def test_cached_prefix_and_own_keys_make_the_whole(x64):
  """Also when only some rows ask."""
  model, _ = random_model(SCREENING)
  rng = np.random.default_rng(0)
  resid = jnp.asarray(rng.normal(size=(2, N_POS, SCREENING.d_model)))
  context = default_context(resid[..., 0])
  block, cut = Block(SCREENING), 4
  params, statics = jax.tree.map(
    lambda x: x[1], (weights.blocks(model.params), layer_statics(SCREENING))
  )

  @functools.partial(jax.jit, static_argnums=0)
  def call(method, *args, **kwargs):
    return block.apply({"params": params}, *args, method=method, **kwargs)

  whole = call(Block.attend, statics, resid, context)
  cached = call(Block.place, whole.k, whole.v, context)
  before = Context(context.positions, context.positions < cut)
  rest = Context(context.positions[:, cut:], context.key_valid[:, cut:])
  last = Context(context.positions[:, -1:], context.key_valid[:, -1:])
  for asking, rows in ((None, slice(cut, None)), (last, slice(-1, None))):
    split = call(
      Block.attend, statics, resid[:, cut:], rest,
      prefix=KV(cached.k, cached.v, before),
      asking=asking and (resid[:, -1:], asking),
    )  # fmt: skip
    np.testing.assert_allclose(split.z, whole.z[:, rows], rtol=0, atol=1e-12)
  mixed = call(Block.mix, statics, resid, whole.q, whole.k, whole.v, context)
  np.testing.assert_allclose(mixed, whole.z, rtol=0, atol=1e-12)


def test_edit_of_scores_lets_any_near_key_pass_but_unmasks_none(x64):
  model, w = random_model(SCREENING)
  tokens = random_tokens(SCREENING, (1, N_POS))
  one = jnp.ones((SCREENING.n_layers, 1, 1, 1, 1))
  _, acts = forward(model, tokens, Edits(scores=(Edit(one, one),)))
  distance = np.subtract.outer(np.arange(N_POS), np.arange(N_POS))
  for layer, head in np.ndindex(SCREENING.n_layers, SCREENING.n_heads):
    window = screening_oracle.window_of(w, layer, head)
    near = (distance >= 0) & (distance < window)
    assert ((acts.pattern[layer, 0, head] > 0) == near).all()


def test_tokens_unembed_as_the_whole_vocabulary_does(x64):
  model, _ = random_model(SCREENING)
  tokens = random_tokens(SCREENING, (2, N_POS))
  resid, _ = run(model.model, model.params, tokens)
  logits = decoder.unembed(model.model, model.params, resid)
  some = decoder.unembed_tokens(model.model, model.params, resid, tokens)
  want = np.take_along_axis(np.asarray(logits), tokens[..., None], -1)[..., 0]
  np.testing.assert_allclose(some, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("psi", FACTS["multiscreen_psi_counts"])
def test_parameter_counts_are_those_of_the_paper_s_scales(psi):
  n = int(psi)
  want = FACTS["multiscreen_psi_counts"][psi]
  assert n_params(full_size(n, n, n * n)) == want


@pytest.mark.parametrize(
  "name, write",
  [("multiscreen-learned", WriteDesign()), ("multiscreen-identity", AXIS)],
)
def test_parameter_counts_at_21_layers_of_16_heads(name, write):
  want = FACTS["parameter_counts"][name]
  assert n_params(full_size(21, 16, 1024, write=write)) == want


@pytest.fixture(scope="module")
def fresh():
  """A model at its initialisation, in float32."""
  config = dataclasses.replace(
    SCREENING, d_model=512, d_head=64, d_key=16, screening_window=256
  )
  tokens = jnp.zeros((1, 1), jnp.int32)
  model = Decoder(config)
  return model, jax.jit(model.init)(jax.random.key(0), tokens)["params"]


def test_initial_weights_have_their_deviations_and_scalars_their_values(fresh):
  _, params = fresh
  want = {
    "W_Q": 0.1 / 16**0.5, "W_K": 0.1 / 16**0.5, "W_V": 0.1 / 64**0.5,
    "W_G": 0.1, "W_O": 0.1 / 512**0.5, "W_E": 0.1 / 512**0.5,
  }  # fmt: skip
  for name, deviation in want.items():
    got = np.std(weights.get(params, name))
    np.testing.assert_allclose(got, deviation, rtol=0.03, err_msg=name)
  windows = np.exp(weights.get(params, "s_w")) + 1
  geometric = 256 ** (np.arange(4) / 3) + 1
  np.testing.assert_allclose(windows, np.tile(geometric, (3, 1)), rtol=1e-5)
  np.testing.assert_array_equal(weights.get(params, "s_r"), np.zeros((3, 4)))
  np.testing.assert_allclose(
    np.exp(weights.get(params, "s_O")), np.full((3, 4), 12**-0.5), rtol=1e-6
  )
  assert weights.get(params, "s_E") == 0
  assert weights.get(params, "s_F") == pytest.approx(np.log(512) / 2)


def test_every_gradient_of_a_fresh_model_is_finite_and_reaches_its_weight(
  fresh,
):
  """Though most of its keys fail, and most of its mixtures are exactly 0."""
  model, params = fresh
  tokens = jnp.asarray(random_tokens(model.config, (4, N_POS)))

  @jax.jit
  @functools.partial(jax.grad, has_aux=True)
  def slopes(params):
    resid, acts = run(model, params, tokens)
    logits = decoder.unembed(model, params, resid)
    return -jax.nn.log_softmax(logits)[..., 1].mean(), acts.z

  found, z = slopes(params)
  assert (z == 0).all(-1).mean() > 0.5
  for path, slope in jax.tree.leaves_with_path(found):
    assert np.isfinite(slope).all() and np.any(slope != 0), path


def test_unit_of_zero_is_zero_with_gradient_zero():
  for dtype, tiny in ((jnp.float32, 1e-30), (jnp.bfloat16, 1e-30)):
    for x in (jnp.zeros(3, dtype), jnp.array([tiny, 0, 0], dtype)):
      value, slope = unit(x), jax.jit(jax.jacobian(unit))(x)
      assert value.dtype == dtype
      assert (value == 0).all() and (slope == 0).all()


def test_unit_has_length_one_at_every_scale():
  x = np.array([3, -4, 0], np.float32) * np.logspace(-15, 15, 7)[:, None]
  want = np.tile([0.6, -0.8, 0], (7, 1))
  np.testing.assert_allclose(unit(jnp.asarray(x, jnp.float32)), want, rtol=1e-6)


def test_tanh_norm_is_the_identity_around_zero(x64):
  zero = jnp.zeros(3)
  assert (tanh_norm(zero) == 0).all()
  slope = jax.jit(jax.jacobian(tanh_norm))(zero)
  np.testing.assert_array_equal(slope, np.eye(3))


def test_tanh_norm_and_its_gradient_are_exact_on_both_sides_of_the_series(x64):
  direction = np.array([0.6, 0, -0.8])
  jacobian = jax.jit(jax.jacobian(tanh_norm))
  for length in np.logspace(-6, 1, 29):
    x = jnp.asarray(length * direction)
    want = np.tanh(length) * direction
    np.testing.assert_allclose(tanh_norm(x), want, rtol=1e-14)
    along = np.outer(direction, direction)
    slope = along / np.cosh(length) ** 2
    slope = slope + (np.eye(3) - along) * np.tanh(length) / length
    np.testing.assert_allclose(jacobian(x), slope, rtol=0, atol=1e-12)


def test_gates_come_per_query_head():
  model, w = random_model(SCREENING, dtype="float32")
  got = weights.per_query_head(model.params, SCREENING, "W_G")
  np.testing.assert_allclose(got, np.swapaxes(w["W_G"], 1, 2), rtol=1e-6)


@pytest.mark.parametrize(
  "field, value",
  [
    ("attention", "linear"),
    ("norm", "layernorm"),
    ("positions", "learned"),
    ("qkv_bias", True),
    ("out_bias", True),
    ("tied", False),
    ("causal", False),
    ("n_kv_heads", 2),
    ("windows", (0, 4, 0)),
    ("value_adapter", 8),
    ("d_key", 1),
    ("d_key", 0),
    ("screening_window", 0),
  ],
)
def test_what_a_screening_model_cannot_have_is_refused_by_name(field, value):
  with pytest.raises(ValueError, match=f"^{field}: got "):
    dataclasses.replace(SCREENING, **{field: value})


def test_mlp_or_block_reader_of_a_screening_model_is_refused():
  with pytest.raises(ValueError, match="^mlp: got 'relu'"):
    dataclasses.replace(SCREENING, mlp="relu", d_mlp=8)
  read = dataclasses.replace(SCREENING.read, kind="block")
  with pytest.raises(ValueError, match="^read: got "):
    dataclasses.replace(SCREENING, read=read)


def test_softmax_keys_are_as_wide_as_the_head():
  with pytest.raises(ValueError, match="^d_key: got 3"):
    dataclasses.replace(GPT2, d_key=3)
