"""Does a real pretrained model give the published numbers?

Expected values: `tests/reference`, made with other libraries from the same
weights.
"""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headjax.data.pairs import PromptPairs
from headjax.interventions.heads import patch_heads
from headjax.models.decoder import run, unembed
from headjax.models.load import load_model
from headjax.models.saving import save_model

REFERENCE = pathlib.Path(__file__).parents[1] / "reference"


@pytest.fixture(scope="module")
def model():
  return load_model("smollm2-135m")


@pytest.fixture(scope="module")
def forward(model):
  """From one prompt's ids: the streams and logits at its last position."""

  @jax.jit
  def padded(tokens, last):
    resid, acts = run(model.model, model.params, tokens)
    row = resid[:, last]
    streams = jnp.concatenate([acts.resid_pre[:, 0, last], row])
    return streams, unembed(model.model, model.params, row)[0]

  def one(ids):
    tokens = np.zeros((1, 16), int)
    tokens[0, : len(ids)] = ids
    return [np.asarray(x) for x in padded(tokens, len(ids) - 1)]

  return one


@pytest.fixture(scope="module")
def published():
  with np.load(REFERENCE / "smollm2_forward.npz", allow_pickle=False) as file:
    return dict(file)


@pytest.mark.parametrize("i", range(4))
def test_stream_and_logits_are_the_published_ones(model, forward, published, i):
  ids = published[f"tokens_{i}"]
  assert model.tokenizer.encode(str(published["prompts"][i])) == list(ids)
  streams, logits = forward(ids)
  for got, want in zip(streams[:-1], published[f"resid_pre_{i}"], strict=True):
    assert np.abs(got - want).max() < 1e-4 * np.abs(want).max()
  top = published[f"top_ids_{i}"]
  np.testing.assert_allclose(
    logits[top], published[f"top_logits_{i}"], rtol=0, atol=1e-3
  )
  assert logits.argmax() == top[0]
  total = np.log(np.exp(logits.astype(float)).sum())
  assert total == pytest.approx(float(published[f"logsumexp_{i}"]), abs=1e-3)


def test_capital_of_france_is_paris(model, forward):
  _, logits = forward(model.tokenizer.encode("The capital of France is"))
  assert model.tokenizer.decode([int(logits.argmax())]) == " Paris"


@pytest.mark.slow
def test_repeated_random_tokens_are_predicted_by_induction(model):
  random = np.random.RandomState(0).randint(100, 49000, (4, 50))
  bos = np.full((4, 1), model.tokenizer.bos)
  tokens = jnp.asarray(np.hstack([bos, random, random]))

  @jax.jit
  def losses(tokens):
    resid, _ = run(model.model, model.params, tokens)
    log_p = jax.nn.log_softmax(unembed(model.model, model.params, resid))
    return -jnp.take_along_axis(log_p[:, :-1], tokens[:, 1:, None], -1)[..., 0]

  loss = np.asarray(losses(tokens)).mean(0)
  assert loss[:50].mean() == pytest.approx(14.1, abs=0.1)
  # The first token of the second copy cannot be known yet.
  assert loss[50] > 10
  assert loss[51:].mean() == pytest.approx(3.2, abs=0.1)


def test_facts_of_the_architecture(model):
  facts = json.loads((REFERENCE / "facts.json").read_text())["smollm2_135m"]
  config = model.config
  names = {"n_layers": "layers", "n_heads": "heads", "n_kv_heads": "kv_heads"}
  names |= {"d_vocab": "vocab"} | {n: n for n in ("d_model", "d_head", "d_mlp")}
  for ours, theirs in names.items():
    assert getattr(config, ours) == facts[theirs]


@pytest.mark.slow
def test_head_effects_are_those_of_another_library(model):
  with np.load(
    REFERENCE / "smollm2_sva_head_patching.npz", allow_pickle=False
  ) as file:
    want = dict(file)
  fields = ("clean", "reference", "answer", "foil")
  data = patch_heads(model, PromptPairs(*(want[name] for name in fields)))
  effects = np.moveaxis(want["effects"], -1, 0)
  np.testing.assert_allclose(data.effect, effects, rtol=0, atol=2e-3)
  np.testing.assert_allclose(data.base, want["base"], rtol=0, atol=2e-3)
  mean = data.effect.mean("example").values
  order = np.argsort(mean, axis=None)[::-1][:2]
  top = [tuple(map(int, np.unravel_index(i, mean.shape))) for i in order]
  assert top == [(26, 0), (27, 8)]


@pytest.mark.slow
def test_the_same_model_in_a_safetensors_folder(model, published, tmp_path):
  save_model(model, tmp_path, shard_bytes=200_000_000)
  assert len(list(tmp_path.glob("*.safetensors"))) >= 3
  again = load_model(tmp_path)
  assert again.config == model.config
  assert again.tokenizer.digest == model.tokenizer.digest
  assert again.tokenizer.bos == model.tokenizer.bos
  ids = jnp.asarray(published["tokens_0"])[None]

  def logits(loaded):
    resid, _ = run(loaded.model, loaded.params, ids)
    return unembed(loaded.model, loaded.params, resid)

  np.testing.assert_allclose(logits(again), logits(model), rtol=0, atol=1e-4)
