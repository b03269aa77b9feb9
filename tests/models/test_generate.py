"""Does a model write what a loop of whole forwards would write?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fixture_folders import FEW, FIXTURES
from helpers import LLAMA, SCREENING, TRACR, random_model, random_tokens
from jax.sharding import AxisType
from one_line import refusal

from headjax.interventions.edits import head_gates
from headjax.models import placement
from headjax.models.decoder import run, unembed
from headjax.models.generate import _generate, generate, held_on
from headjax.models.load import load_model
from headjax.models.sites import Edit, Edits, LinearEdit

N_NEW = 32
CONFIG = dataclasses.replace(LLAMA, n_ctx=48, windows=(0, 3, 20))
LENGTHS = [7, 2, 5]


@pytest.fixture(scope="module")
def model():
  return random_model(CONFIG, scale=0.6, dtype="float32")[0]


@pytest.fixture(scope="module")
def tokens():
  return random_tokens(CONFIG, (len(LENGTHS), max(LENGTHS)))


def loop(model, prompt, n_new, edits=Edits()):
  """One row's greedy continuation, by a whole forward for each token."""
  ids = [int(i) for i in prompt]
  whole = np.zeros((1, len(ids) + n_new), int)  # one compile
  for _ in range(n_new):
    whole[0, : len(ids)] = ids
    resid, _ = run(model.model, model.params, jnp.asarray(whole), edits)
    logits = unembed(model.model, model.params, resid[0, len(ids) - 1])
    ids.append(int(logits.argmax()))
  return ids[-n_new:]


def steering(config):
  n = config.n_layers
  rng = np.random.default_rng(5)
  matrix = jnp.asarray(rng.normal(size=(n, config.d_model, config.d_model)))
  vector = jnp.asarray(rng.normal(size=(n, 1, 1, config.d_model)))
  gates = head_gates(config)
  k = jnp.asarray(rng.normal(size=(n, 1, 1, config.n_heads, config.d_key)))
  return Edits(
    k=(Edit(gates[2], k),),
    resid_pre=(LinearEdit(jnp.full(n, 0.1), matrix),),
    resid_post=(Edit(jnp.array([0, 0.5, 0]), vector),),
    z=(Edit(gates[1] + gates[7], jnp.zeros(n)),),
  )


@pytest.mark.parametrize("name", FEW)
def test_greedy_tokens_are_those_of_transformers(name):
  with np.load(FIXTURES / name / "greedy.npz", allow_pickle=False) as file:
    expected = file["tokens"]
  model = load_model(FIXTURES / name)
  found = generate(model, expected[:, :5], max_new=expected.shape[1] - 5)
  np.testing.assert_array_equal(found, expected[:, 5:])
  # What is likeliest is not always the same.
  assert len(np.unique(expected)) > 5


@pytest.mark.parametrize("edited", [False, True])
def test_greedy_tokens_are_those_of_a_loop(model, tokens, edited):
  edits = steering(CONFIG) if edited else Edits()
  found = generate(model, tokens, max_new=N_NEW, lengths=LENGTHS, edits=edits)
  assert found.shape == (3, N_NEW) and found.dtype == np.int32
  for row, n in enumerate(LENGTHS):
    assert list(found[row]) == loop(model, tokens[row, :n], N_NEW, edits)
  assert len(np.unique(found)) > 5


@pytest.mark.slow
def test_screening_models_write_too_and_float64_is_kept(x64):
  config = dataclasses.replace(SCREENING, n_ctx=20)
  model, _ = random_model(config, scale=1.0)
  tokens = random_tokens(config, (2, 6))
  found = generate(model, tokens, max_new=8, lengths=[6, 3])
  for row, n in enumerate([6, 3]):
    assert list(found[row]) == loop(model, tokens[row, :n], 8)


def test_a_model_that_is_split_over_devices_writes_the_same(model, tokens):
  axes = (AxisType.Auto,) * 3
  mesh = jax.make_mesh((2, 2, 2), ("data", "fsdp", "tensor"), axes)
  where = placement.of_params(mesh, model.config, model.params)
  split = dataclasses.replace(model, params=jax.device_put(model.params, where))
  wanted = generate(model, tokens, max_new=4, lengths=LENGTHS)
  found = generate(split, tokens, max_new=4, lengths=LENGTHS)
  np.testing.assert_array_equal(found, wanted)


def test_one_compile_serves_all_prompts_of_a_width(model, tokens):
  before = _generate._cache_size()
  first = generate(model, tokens, max_new=3, lengths=LENGTHS)
  assert _generate._cache_size() == before + 1
  other = random_tokens(CONFIG, (3, 15), seed=9)
  generate(model, other, max_new=3, lengths=[15, 1, 9], seed=4)
  assert _generate._cache_size() == before + 1
  np.testing.assert_array_equal(
    generate(model, np.pad(tokens, ((0, 0), (0, 20))), max_new=3,
             lengths=LENGTHS),
    first,
  )  # fmt: skip
  assert _generate._cache_size() == before + 1


@pytest.mark.slow
def test_draws_do_not_depend_on_the_other_rows(model, tokens):
  settings = {"max_new": 6, "temperature": 1.5, "top_k": 12}
  whole = generate(model, tokens, lengths=LENGTHS, seed=3, **settings)
  part = generate(model, tokens[:2], lengths=LENGTHS[:2], seed=3, **settings)
  np.testing.assert_array_equal(part, whole[:2])
  other = generate(model, tokens, lengths=LENGTHS, seed=4, **settings)
  assert (other != whole).any()


def test_a_row_ends_with_its_stop_token(model, tokens):
  free = generate(model, tokens, max_new=10, lengths=LENGTHS)
  stop = [int(free[0, 2]), int(free[1, 0])]
  found = generate(model, tokens, max_new=10, lengths=LENGTHS, stop=stop)
  for row, wanted in zip(found, free, strict=True):
    at = np.flatnonzero(np.isin(wanted, stop))
    end = at[0] if at.size else 9
    np.testing.assert_array_equal(row[: end + 1], wanted[: end + 1])
    assert (row[end:] == row[end]).all()


def test_an_edit_of_some_positions_is_for_the_prompt_alone(model, tokens):
  n, h = CONFIG.n_layers, CONFIG.n_heads
  prompt = tokens[:1]
  value = np.random.default_rng(1).normal(size=(n, 1, 7, h, CONFIG.d_head))
  local = Edits(z=(Edit(jnp.ones(n), jnp.asarray(value)),))
  found = generate(model, prompt, max_new=4, edits=local)
  assert held_on(local) == Edits()

  def later(new):  # the same as an edit that is open at the prompt only
    n_all = 7 + len(new)
    gate = np.zeros((n, 1, n_all, 1, 1))
    gate[:, :, :7] = 1
    wide = np.zeros((n, 1, n_all, h, CONFIG.d_head))
    wide[:, :, :7] = value
    edits = Edits(z=(Edit(jnp.asarray(gate), jnp.asarray(wide)),))
    whole = jnp.asarray([[*prompt[0], *new]])
    resid, _ = run(model.model, model.params, whole, edits)
    return unembed(model.model, model.params, resid)[0, 6:-1].argmax(-1)

  np.testing.assert_array_equal(later(found[0]), found[0])


def test_what_is_held_on_broadcasts_over_positions():
  n, d, t = 3, 16, 7
  one, all_ = jnp.ones(n), jnp.ones((n, 1, t, 1))
  wide = Edit(one, jnp.ones((n, 1, 1, d)))
  edits = Edits(
    resid_pre=(wide, Edit(all_, one), LinearEdit(one, jnp.ones((n, d, d)))),
    resid_mid=(Edit(one, jnp.ones((n, 1, t, d))), LinearEdit(all_, one)),
    pattern=(
      Edit(jnp.ones((n, 1, 4, 1, 1)), one),
      Edit(jnp.ones((n, 1, 4, t, 1)), one),
      Edit(jnp.ones((n, 1, 4, 1, t)), one),
      LinearEdit(one, jnp.ones((n, t, t))),
    ),
  )
  held = held_on(edits)
  assert held.resid_pre == (edits.resid_pre[0], edits.resid_pre[2])
  assert held.resid_mid == ()
  assert held.pattern == edits.pattern[:1]


@pytest.mark.parametrize(
  ("changes", "parts"),
  [
    ({"max_new": 0}, ["max_new", "at least 1"]),
    ({"max_new": 42}, ["max_new", "7 tokens", "48"]),
    ({"temperature": -1.0}, ["temperature", "-1.0"]),
    ({"temperature": float("nan")}, ["temperature", "nan"]),
    ({"top_k": 0}, ["top_k", "at least 1"]),
    ({"top_k": 30}, ["top_k", "at most 29"]),
    ({"seed": -1}, ["seed", "-1"]),
    ({"lengths": [8, 1, 1]}, ["lengths", "1 to 7"]),
    ({"edits": Edits(z=(Edit(jnp.ones(2), jnp.ones(2)),))}, ["z", "3 layers"]),
  ],
)
def test_bad_settings_are_refused(model, tokens, changes, parts):
  with refusal(*parts):
    generate(model, tokens, **{"max_new": 2} | changes)


def test_attention_to_tokens_that_are_not_there_is_refused(model, tokens):
  edits = Edits(pattern=(Edit(jnp.ones(3), jnp.full(3, 0.1)),))
  with refusal("edits.pattern", "0"):
    generate(model, tokens, max_new=2, edits=edits)


def test_models_that_look_ahead_are_refused():
  model, _ = random_model(TRACR, dtype="float32")
  with refusal("model", "causal"):
    generate(model, random_tokens(TRACR, (1, 4)), max_new=2)


@pytest.mark.slow
def test_a_real_model_goes_on_about_paris():
  model = load_model("smollm2-135m")
  texts = ["The capital of France is", "Once upon a time"]
  prompts = [model.tokenizer.encode(text) for text in texts]
  lengths = [len(prompt) for prompt in prompts]
  tokens = np.zeros((2, max(lengths)), int)
  for row, prompt in zip(tokens, prompts, strict=True):
    row[: len(prompt)] = prompt
  found = generate(model, tokens, max_new=N_NEW, lengths=lengths)
  assert model.tokenizer.decode(found[0]).startswith(" Paris")
  for row, prompt in zip(found, prompts, strict=True):
    assert list(row) == loop(model, prompt, N_NEW)
