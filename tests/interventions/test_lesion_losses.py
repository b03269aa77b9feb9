"""Is the loss of a text that of a plain forward, with and without heads?"""

import jax
import numpy as np
import oracle
import pytest
from helpers import FAMILIES, GPT2, random_model, random_pairs
from one_line import refusal

from headjax.interventions.lesion_losses import answered, lesion_losses

LENGTHS = [6, 8, 3]
GROUPS = np.zeros((2, 3, 4), bool)
GROUPS[0, 0, 1] = GROUPS[0, 2, 3] = True


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def losses(config, w, tokens, patch):
  """`[pos - 1]` of every token after the first."""
  logits = oracle.forward(config, w, tokens, z_patch=patch)[1][:-1]
  log = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
  return -log[np.arange(len(tokens) - 1), tokens[1:]]


@pytest.mark.parametrize("name", ["gpt2", "llama_kv2"])
def test_losses_are_those_of_single_forwards(x64, name):
  config = FAMILIES[name]
  model, w = random_model(config)
  pairs = random_pairs(config, LENGTHS, [-1] * 3)
  found = lesion_losses(
    model, pairs.clean, GROUPS, lengths=pairs.lengths, examples=2
  )
  for i, n in enumerate(LENGTHS):
    tokens = pairs.clean[i, :n]
    gone = {tuple(h): np.zeros((n, config.d_head)) for h in ((0, 1), (2, 3))}
    base = losses(config, w, tokens, {}).mean()
    wanted = losses(config, w, tokens, gone).mean()
    assert abs(base - wanted) > 1e-2
    assert found.base.values[i] == pytest.approx(base, abs=1e-9)
    assert found.lesioned.values[i, 0] == pytest.approx(wanted, abs=1e-9)
  np.testing.assert_array_equal(found.lesioned[:, 1], found.base)


def test_only_answers_count(x64):
  model, w = random_model(GPT2)
  pairs = random_pairs(GPT2, LENGTHS, [-1] * 3)
  tokens, lengths, counted = answered(pairs)
  found = lesion_losses(model, tokens, GROUPS, lengths=lengths, counted=counted)
  for i, n in enumerate(LENGTHS):
    text = np.append(pairs.clean[i, :n], pairs.answer[i])
    wanted = losses(GPT2, w, text, {})[-1]
    assert found.base.values[i] == pytest.approx(wanted, abs=1e-9)


def test_what_does_not_fit_is_refused():
  model, _ = random_model(GPT2, dtype="float32")
  tokens = np.ones((2, 4), int)
  with refusal("groups: got bool of shape (2, 3, 3)"):
    lesion_losses(model, tokens, GROUPS[..., :3])
  with refusal("counted: got text 1 of which nothing counts"):
    lesion_losses(model, tokens, GROUPS, lengths=[4, 1])
