"""Are heads known by what they attend to, and are no patterns made up?"""

import dataclasses

import jax
import numpy as np
import oracle
import pytest
import tokenizers as backends
from helpers import FAMILIES, GPT2, SCREENING, random_model, random_tokens
from one_line import refusal

from headjax import results
from headjax.data.repeats import repeated
from headjax.interventions.kinds import KINDS
from headjax.interventions.patterns import head_scores, patterns
from headjax.models.decoder import run
from headjax.models.load import load_model
from headjax.models.tokenizers import Tokenizer

LENGTHS = [12, 3, 9, 1]


def some_tokens(config=GPT2):
  """Few ids, so that many occur again."""
  return random_tokens(dataclasses.replace(config, d_vocab=4), (4, 12))


def keys_of(kind, ids, q):
  """The keys of a kind, as its definition says, and what each counts."""
  earlier = [j for j in range(q) if ids[j] == ids[q]]
  found = {
    "previous": [q - 1],
    "duplicate": earlier,
    "induction": [j + 1 for j in earlier if j + 1 < q],
    "first": [0],
    "self": [q],
    "local": [q - n for n in (2, 3, 4, 5)] if q >= 5 else [],
  }[kind]
  return found, 1 / 4 if kind == "local" else 1


def loop(kind, pattern, ids):
  """A head's score on one sequence, and over how many queries."""
  sums = []
  for q in range(1, len(ids)):
    keys, share = keys_of(kind, ids, q)
    if keys:
      sums.append(share * sum(pattern[q, k] for k in keys))
  return sum(sums) / len(sums) if sums else np.nan, len(sums)


@pytest.mark.parametrize("family", ["gpt2", "llama_windows"])
def test_scores_are_those_of_a_loop_over_queries(x64, family):
  config = FAMILIES[family]
  model, raw = random_model(config)
  tokens = some_tokens()
  found = head_scores(model, tokens, lengths=LENGTHS)
  for example, n in enumerate(LENGTHS):
    ids = tokens[example, :n]
    pattern = oracle.forward(config, raw, ids)[2]["pattern"]
    for kind in KINDS:
      here = {"kind": kind, "example": example}
      for layer, head in np.ndindex(config.n_layers, config.n_heads):
        wanted, n_queries = loop(kind, pattern[layer, head], ids)
        got = found.score.sel(here | {"layer": layer, "head": head})
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)
        assert found.queries.sel(here) == n_queries
  assert (found.queries.sel(kind="induction") > 2).any()


def test_screening_heads_have_patterns_too():
  model, _ = random_model(SCREENING, dtype="float32")
  tokens = some_tokens()
  _, acts = run(model.model, model.params, tokens)
  found = patterns(model, tokens)
  np.testing.assert_allclose(
    found, np.moveaxis(np.asarray(acts.pattern), 1, 2), atol=1e-6
  )


def test_patterns_are_those_of_each_prompt_alone(x64):
  config = FAMILIES["llama_kv2"]
  model, raw = random_model(config)
  tokens = random_tokens(config, (4, 12))
  found = patterns(model, tokens, lengths=LENGTHS)
  assert found.dims == ("layer", "head", "example", "query", "key")
  for example, n in enumerate(LENGTHS):
    wanted = oracle.forward(config, raw, tokens[example, :n])[2]["pattern"]
    got = found.sel(example=example)
    np.testing.assert_allclose(got[..., :n, :n], wanted, rtol=0, atol=1e-12)
    assert not got[..., n:, :].any() and not got[..., n:].any()


def test_tokens_stand_beside_ids():
  words = {f" w{i}": i for i in range(29)}
  backend = backends.Tokenizer(
    backends.models.WordLevel(words, unk_token=" w0")
  )
  model, _ = random_model(GPT2, dtype="float32")
  assert "token" not in patterns(model, [[3, 0]]).coords
  model = dataclasses.replace(model, tokenizer=Tokenizer(backend, "words"))
  found = patterns(model, [[3, 0], [5, 28]])
  assert found.id.values.tolist() == [[3, 0], [5, 28]]
  assert found.token.values.tolist() == [[" w3", " w0"], [" w5", " w28"]]


@pytest.mark.parametrize("call", [head_scores, patterns])
def test_chunks_and_devices_do_not_matter(x64, monkeypatch, call):
  model, _ = random_model(GPT2)
  tokens = some_tokens()
  whole = call(model, tokens, lengths=LENGTHS)
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  least = 8 * 12**2 * (24 if call is head_scores else 4 * 12)
  parts = call(model, tokens, lengths=LENGTHS, budget_bytes=least)
  np.testing.assert_allclose(
    *(x if call is patterns else x.score for x in (parts, whole)),
    rtol=0, atol=1e-12,
  )  # fmt: skip
  with refusal("budget_bytes", str(least), "12 tokens"):
    call(model, tokens, budget_bytes=least - 1)


def test_a_saved_result_is_the_same(tmp_path):
  model, _ = random_model(GPT2, dtype="float32")
  found = head_scores(model, some_tokens(), lengths=LENGTHS, name="few")
  results.save(found, tmp_path / "scores.nc")
  again = results.load(tmp_path / "scores.nc")
  assert again.identical(found)
  assert again.attrs["task"] == "few" and again.attrs["model"] == "random"
  longer = head_scores(model, some_tokens(), lengths=[12, 3, 9, 2])
  assert longer.attrs["pairs_digest"] != found.attrs["pairs_digest"]


def test_bad_tokens_are_refused():
  model, _ = random_model(GPT2, dtype="float32")
  with refusal("tokens", "to 29"):
    head_scores(model, [[29]])
  with refusal("lengths", "1 to 2"):
    patterns(model, [[1, 2]], lengths=[3])


PUBLISHED = {
  "induction": {(18, 6): 0.88, (17, 3): 0.76, (17, 4): 0.72, (17, 5): 0.62,
                (18, 7): 0.56},
  "previous": {(16, 0): 0.88, (11, 1): 0.88, (1, 2): 0.75, (2, 1): 0.75},
  "duplicate": {(8, 0): 0.64, (14, 3): 0.64},
}  # fmt: skip


@pytest.mark.slow
def test_known_heads_of_a_real_model():
  """Those that another library found, on its tokens; and the same on others."""
  model = load_model("smollm2-135m")
  random = np.random.RandomState(0).randint(100, 49000, (4, 50))
  bos = np.full((4, 1), model.tokenizer.bos)
  score = head_scores(model, np.hstack([bos, random, random])).score
  others = repeated(model.config.d_vocab, bos=model.tokenizer.bos, seed=1)
  again = head_scores(model, others).score
  for kind, heads in PUBLISHED.items():
    mean = score.sel(kind=kind).mean("example").values
    assert strongest(mean, len(heads)) == set(heads)
    for head, wanted in heads.items():
      assert mean[head] == pytest.approx(wanted, abs=0.005)
    mean = again.sel(kind=kind).mean("example").values
    assert strongest(mean, 1) <= set(heads)


def strongest(values, n):
  order = np.argsort(-values, axis=None)[:n]
  return {tuple(map(int, np.unravel_index(i, values.shape))) for i in order}
