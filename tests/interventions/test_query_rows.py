"""Are outputs and attention those of a plain forward, at the query?"""

import jax
import numpy as np
import oracle
import pytest
from helpers import FAMILIES, PUBLIC, random_model, random_tokens
from one_line import refusal

from headjax.data.probes import Probe, plain_targets
from headjax.interventions.query_rows import query_rows

QUERY = np.array([11, 7, 9, 11, 6])


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def probe_of(config):
  tokens = random_tokens(config, (len(QUERY), 12))
  keys = plain_targets(QUERY, np.array([2, -1, 0, 3, 1]))
  return Probe(tokens, QUERY, tokens[:, 0], keys, 1 / config.d_vocab, "few")


@pytest.mark.parametrize(
  "name",
  ["gpt2", "llama_windows", pytest.param("olmo2", marks=pytest.mark.slow)],
)
def test_rows_are_those_of_the_oracle(x64, name):
  config = (FAMILIES | PUBLIC)[name]
  model, w = random_model(config)
  probe = probe_of(config)
  n_bytes = 8 * 2 * 12 * 600
  parts = list(query_rows(model, probe, budget_bytes=n_bytes))
  assert len(parts) > 1
  for part in parts:
    for i, row in enumerate(range(len(probe))[part.place]):
      n = QUERY[row] + 1
      seen = oracle.forward(config, w, probe.tokens[row, :n])[2]
      for layer in range(config.n_layers):
        wanted = np.asarray(seen["pattern"][layer])[:, -1]
        got = part.pattern[i, layer]
        np.testing.assert_allclose(got[:, :n], wanted, atol=1e-10)
        assert not got[:, n:].any()
        np.testing.assert_allclose(
          part.z[i, layer], seen["z"][layer][-1], atol=1e-10
        )


def test_a_budget_for_no_row_is_refused():
  model, _ = random_model(FAMILIES["gpt2"], dtype="float32")
  with refusal("budget_bytes: got 10; expected at least"):
    next(query_rows(model, probe_of(model.config), budget_bytes=10))
