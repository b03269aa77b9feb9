"""Do sources add up to the head, and are they those of single tokens?"""

import jax
import numpy as np
import oracle
import pytest
from helpers import (
  FAMILIES,
  GPT2,
  PUBLIC,
  SCREENING,
  random_model,
  random_pairs,
)
from one_line import refusal

from headjax.interventions.direct_logits import direct_logits
from headjax.interventions.sources import by_source

LENGTHS = [6, 8, 3, 7]
NAMES = ("one", "two", "three")
CASES = {
  "gpt2": GPT2,
  "llama_kv2": FAMILIES["llama_kv2"],
  "llama_windows": FAMILIES["llama_windows"],
}


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def kinds_of(pairs, least=0):
  return np.random.default_rng(2).integers(least, 3, pairs.clean.shape)


@pytest.mark.parametrize("name", CASES)
def test_sources_add_up_to_the_head(x64, name):
  model, _ = random_model(CASES[name])
  pairs = random_pairs(CASES[name], LENGTHS, [-1] * 4)
  found = by_source(model, pairs, kinds_of(pairs), NAMES, examples=3)
  whole = direct_logits(model, pairs, centred=False)
  assert np.abs(whole.attribution).max() > 1e-2
  np.testing.assert_allclose(
    found.attribution.sum("source"), whole.attribution, atol=1e-10
  )
  np.testing.assert_allclose(found.attention.sum("source"), 1, atol=1e-10)


def test_attention_is_that_of_the_oracle_by_kind(x64):
  model, w = random_model(GPT2)
  pairs = random_pairs(GPT2, LENGTHS, [-1] * 4)
  kinds = kinds_of(pairs, least=-1)
  found = by_source(model, pairs, kinds, NAMES)
  for i, n in enumerate(pairs.lengths):
    acts = oracle.forward(GPT2, w, pairs.clean[i, :n])[2]
    for layer, head, kind in np.ndindex(3, 4, 3):
      row = acts["pattern"][layer][head][-1]
      wanted = sum(row[k] for k in range(n) if kinds[i, k] == kind)
      got = found.attention.values[i, layer, head, kind]
      assert got == pytest.approx(wanted, abs=1e-10)
  assert (found.attention.sum("source") < 1 - 1e-6).any()


def test_what_does_not_fit_is_refused():
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, LENGTHS, [-1] * 4)
  with refusal("kinds: got shape (4, 8), 0 to 2; expected shape (4, 8), -1"):
    by_source(model, pairs, kinds_of(pairs), NAMES[:2])
  screening, _ = random_model(SCREENING, dtype="float32")
  with refusal("model: got screening attention"):
    by_source(screening, pairs, kinds_of(pairs), NAMES)
  gemma, _ = random_model(PUBLIC["gemma2"], dtype="float32")
  with refusal("model: got a norm of the attention output"):
    by_source(gemma, pairs, kinds_of(pairs), NAMES)
