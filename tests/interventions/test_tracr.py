"""Do ablations find the parts of a circuit that is known by construction?"""

import json
import pathlib

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tracr_model

from headjax.interventions import edits
from headjax.interventions.record import record
from headjax.interventions.sweep import general_sweep, suffix_sweep
from headjax.models.decoder import run, unembed

FACTS = pathlib.Path(__file__).parents[1] / "reference" / "facts.json"
EXPECTED = json.loads(FACTS.read_text())["tracr_reverse_zero_ablation_accuracy"]


@pytest.fixture(scope="module")
def compiled():
  return tracr_model.compile_reverse()


@pytest.fixture(scope="module")
def model(compiled):
  return tracr_model.convert(compiled)


@pytest.fixture(scope="module")
def strings(compiled):
  return tracr_model.all_strings(compiled)


def accuracy(model, strings, changes):
  """Share of right tokens, over all tokens of all strings."""
  tokens, target, valid = strings
  resid, _ = run(
    model.model, model.params, tokens, changes, key_valid=jnp.asarray(valid)
  )
  guess = unembed(model.model, model.params, resid).argmax(-1)
  return np.mean(np.asarray(guess)[target >= 0] == target[target >= 0])


def at_layer(layer, n_axes):
  gate = np.zeros((4,) + (1,) * (n_axes - 1), np.float32)
  gate[layer] = 1
  return jnp.asarray(gate)


def test_converted_model_computes_what_tracr_computes(compiled, model):
  for string in ([1, 2, 3], [3, 1, 1, 2], [2, 2, 3, 1, 1]):
    theirs = compiled.apply(["BOS", *string])
    tokens = compiled.input_encoder.encode(["BOS", *string])
    resid, _ = run(model.model, model.params, jnp.array([tokens]))
    np.testing.assert_allclose(resid, theirs.transformer_output, atol=1e-5)
    assert theirs.decoded[1:] == string[::-1]


def test_clean_model_reverses_every_string(model, strings):
  assert accuracy(model, strings, edits.Edits()) == EXPECTED["clean"]


def test_padding_must_be_masked(model, strings):
  tokens, target, _ = strings
  whole = (tokens, target, np.ones_like(target, bool))
  assert accuracy(model, whole, edits.Edits()) < 0.9


@pytest.mark.parametrize("layer", range(4))
def test_zero_ablating_a_head_costs_what_is_published(model, strings, layer):
  changes = edits.zero(model.config, "z", at_layer(layer, 5))
  got = accuracy(model, strings, changes)
  assert got == pytest.approx(EXPECTED["heads"][f"L{layer}H0"], abs=1e-4)


@pytest.mark.parametrize("layer", range(4))
def test_zero_ablating_an_mlp_costs_what_is_published(model, strings, layer):
  changes = edits.zero(model.config, "mlp_out", at_layer(layer, 4))
  got = accuracy(model, strings, changes)
  assert got == pytest.approx(EXPECTED["mlps"][f"L{layer}"], abs=1e-4)


@flax.struct.dataclass
class Right:
  """1 where the target is the first of the tokens with the highest logit.

  Without layer 0's head some tokens tie exactly, so logits within rounding
  of each other count as equal here.
  """

  target: jax.Array

  def __call__(self, model, params, resid):
    logits = jnp.round(unembed(model, params, resid), 3)
    return (logits.argmax(-1) == self.target) * 1.0


def sweep_at(model, strings, pos, method):
  """`[layer, string]`: whether each ablated model is right at a position."""
  tokens, target, valid = (jnp.asarray(x) for x in strings)
  answer = jnp.minimum(pos, valid.sum(1) - 1)
  metric = Right(jnp.take_along_axis(target, answer[:, None], 1)[:, 0])
  if method == "suffix":
    clean = record(model.model, model.params, tokens, key_valid=valid)
    sweep = suffix_sweep(
      model.model, model.params, clean, jnp.zeros_like(clean.z), metric,
      start=np.zeros(len(tokens), int), answer=np.asarray(answer),
    )  # fmt: skip
    return sweep.base - sweep.effect[:, 0]
  (edit,) = edits.zero(model.config, "z").z
  changes = edits.Edits(z=(edit.replace(gate=edits.head_gates(model.config)),))
  sweep = general_sweep(
    model.model, model.params, tokens, changes, metric,
    answer=answer, key_valid=valid,
  )  # fmt: skip
  return sweep.base - sweep.effect


@pytest.mark.parametrize("method", ["general", "suffix"])
def test_sweeps_over_heads_find_the_same_circuit(model, strings, method):
  target = strings[1]
  right = [
    sweep_at(model, strings, pos, method)[:, target[:, pos] >= 0]
    for pos in range(1, target.shape[1])
  ]
  got = np.concatenate(right, axis=1).mean(1)
  # Ties go to the first token: 1350 of the 1620 tokens are right.
  np.testing.assert_allclose(got, [1350 / 1620, 1, 1, 1 / 3], atol=1e-6)
