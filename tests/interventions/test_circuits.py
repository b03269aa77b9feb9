"""Are known circuits found exactly, and others as a slow loop finds them?"""

import itertools

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_graph
import tracr_model
from helpers import PUBLIC, random_model, random_pairs
from slow_params import slow_but
from slow_sweep import metric_value

from headjax.interventions import acdc, nodes
from headjax.interventions.circuits import PromptGraph, find_circuit
from headjax.interventions.questions import Batch
from headjax.models.config import ModelConfig
from headjax.models.decoder import run

SMALL = ModelConfig(2, 2, 8, 4, 12, 13, 8)
# Conmy et al. 2023, as (receiver, sender): what zero ablation leaves of the two
# programs that tracr compiled.
REVERSE = {
  ("unembedding", "L3H0"), ("L3H0.Q", "L2.mlp"), ("L3H0.K", "positions"),
  ("L3H0.V", "embedding"), ("L2.mlp", "L1.mlp"), ("L1.mlp", "L0.mlp"),
  ("L1.mlp", "embedding"), ("L1.mlp", "positions"), ("L0.mlp", "L0H0"),
  ("L0.mlp", "embedding"), ("L0H0.V", "embedding"),
}  # fmt: skip
FRACTIONS = {
  ("unembedding", "L1H0"), ("L1H0.Q", "embedding"), ("L1H0.Q", "positions"),
  ("L1H0.K", "embedding"), ("L1H0.K", "positions"), ("L1H0.V", "L0.mlp"),
  ("L0.mlp", "embedding"),
}  # fmt: skip
THRESHOLDS = (1e-6, 1e-4, 1e-2, 0.1, 1.0, 10.0)


@flax.struct.dataclass
class Squares:
  """Mean square change of a program's output, after the first position."""

  clean: jax.Array
  output: jax.Array

  def __call__(self, model, params, resid):
    return (((resid - self.clean) @ self.output)[:, 1:] ** 2).mean((1, 2))


def compiled_graph(compiled, name, tokens):
  """A compiled program's graph under zero ablation, and its config."""
  labels = compiled.residual_labels
  output = np.eye(len(labels), dtype=np.float32)
  output = output[:, [label.startswith(name) for label in labels]]
  d_vocab = len(compiled.params["token_embed"]["embeddings"])
  W_U = np.zeros((len(labels), d_vocab), np.float32)
  model = tracr_model.convert(compiled, W_U)
  tokens = np.array(tokens)
  ids = tokens[:, 0]
  batch = Batch(tokens, tokens, ids, ids, ids, np.ones(tokens.shape, bool))
  resid, _ = run(model.model, model.params, tokens)
  distance = Squares(resid, jnp.asarray(output))
  return model.config, PromptGraph(model, batch, "zero", distance)


def reverse():
  compiled = tracr_model.compile_reverse()
  encode = compiled.input_encoder.encoding_map
  strings = itertools.permutations(tracr_model.VOCABULARY)
  rows = [[encode[x] for x in ("BOS", *string)] for string in strings]
  return *compiled_graph(compiled, "reverse", rows), REVERSE


def fractions():
  """On strings of the ids 0 to 3, as in the publication."""
  rows = list(itertools.product(range(4), repeat=4))
  compiled = tracr_model.compile_fractions()
  return *compiled_graph(compiled, "frac_prevs", rows), FRACTIONS


def named(config, present):
  receivers, senders = nodes.receivers(config), nodes.senders(config)
  return {(str(receivers[r]), str(senders[s])) for r, s in np.argwhere(present)}


def area(scores, truth):
  """Under the curve of true against false edges; ties count half."""
  good, bad = scores[truth][:, None], scores[~truth][None]
  return ((good > bad) + 0.5 * (good == bad)).mean()


@pytest.mark.parametrize("program", slow_but([reverse], [reverse, fractions]))
def test_the_circuit_of_a_compiled_program_is_found_exactly(program):
  config, graph, known = program()
  found = [
    acdc.search(config, graph, threshold, speculate=16)
    for threshold in THRESHOLDS
  ]
  for one in found[:3]:
    assert named(config, one.present) == known
  assert not found[-1].present.any()
  alone = acdc.search(config, graph, THRESHOLDS[0])
  np.testing.assert_array_equal(alone.present, found[0].present)
  assert found[0].decisions == alone.decisions > found[0].batches
  there = nodes.possible(config)
  scores = sum(one.present[there].astype(int) for one in found)
  assert area(scores, found[0].present[there]) == 1.0


def small():
  model, w = random_model(SMALL, scale=0.5)
  return model, w, random_pairs(SMALL, [5, 6, 4], [1, 3, 0])


@pytest.mark.parametrize(
  ("metric", "ablation", "threshold"),
  [("kl", "reference", 0.001), ("logit_difference", "zero", 0.03)],
)
def test_a_circuit_is_what_a_slow_loop_finds(x64, metric, ablation, threshold):
  """One oracle run an edge and example, of a graph of streams."""
  model, w, pairs = small()
  runs = []
  for i, stop in enumerate(pairs.lengths):
    tokens, others = pairs.clean[i, :stop], pairs.reference[i, :stop]
    corrupted, _ = slow_graph.forward(SMALL, w, others)
    if ablation == "zero":
      corrupted = [0 * x for x in corrupted]
    runs.append((tokens, corrupted, pairs.answer[i], pairs.foil[i]))

  def logits(resid):
    x = resid[-1] - resid[-1].mean()
    x = x / np.sqrt((x**2).mean() + SMALL.norm_eps)
    return (x * w["final_norm_gain"] + w["final_norm_bias"]) @ w["W_E"].T

  clean = [logits(slow_graph.forward(SMALL, w, r[0])[1]) for r in runs]

  def evaluate(masks, layer):
    found = []
    for mask in masks:
      each = []
      for (tokens, corrupted, *ids), whole in zip(runs, clean, strict=True):
        _, resid = slow_graph.forward(SMALL, w, tokens, 1.0 * mask, corrupted)
        base = metric_value(metric, whole, whole, *ids)
        each.append(base - metric_value(metric, logits(resid), whole, *ids))
      found.append(np.mean(each))
    return np.array(found)

  slow = acdc.search(SMALL, evaluate, threshold)
  data = find_circuit(
    model, pairs, threshold, ablation=ablation, metric=metric, speculate=5
  )
  assert 5 < slow.present.sum() < 0.8 * nodes.possible(SMALL).sum()
  np.testing.assert_array_equal(data.present, slow.present)
  np.testing.assert_allclose(data.rise, slow.rise, rtol=0, atol=1e-10)
  assert data.attrs["value"] == pytest.approx(slow.value, abs=1e-10)


def test_speculation_finds_the_same_circuit(x64):
  model, _, pairs = small()
  alone, five, many = (
    find_circuit(model, pairs, 0.005, speculate=n) for n in (1, 5, 40)
  )
  for other in (five, many):
    np.testing.assert_array_equal(other.present, alone.present)
    assert other.attrs["decisions"] == alone.attrs["decisions"]
    assert other.attrs["batches"] < alone.attrs["batches"]
  np.testing.assert_allclose(many.rise, alone.rise, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_all_edges_have_no_divergence(monkeypatch):
  """In float32; the search itself begins with that measurement."""
  model, _ = random_model(SMALL, scale=0.5, dtype="float32")
  pairs = random_pairs(SMALL, [5, 6, 4], [1, 3, 0])
  monkeypatch.setattr(acdc, "START", 1e-6)
  data = find_circuit(model, pairs, 100.0)
  assert data.present.sum() == 0 and data.attrs["value"] > 0.01


def test_a_budget_means_smaller_batches(x64):
  model, _, pairs = small()
  whole = find_circuit(model, pairs, 0.005, speculate=16)
  part = find_circuit(model, pairs, 0.005, speculate=16, budget_bytes=200_000)
  np.testing.assert_array_equal(part.present, whole.present)
  assert part.attrs["batches"] > whole.attrs["batches"]
  assert part.attrs["chunk"] < whole.attrs["chunk"]


@pytest.mark.parametrize(
  ("options", "parts"),
  [
    ({"ablation": "mean"}, ["ablation", "reference, zero"]),
    ({"metric": "loss"}, ["metric", "kl, logit_difference"]),
    ({"threshold": -1}, ["threshold: got -1"]),
    ({"speculate": 0}, ["speculate: got 0"]),
    ({"budget_bytes": 9}, ["budget_bytes", "at least"]),
  ],
)
def test_bad_requests_are_refused(options, parts):
  model, _ = random_model(SMALL, dtype="float32")
  pairs = random_pairs(SMALL, [5, 6], [1, 3])
  with pytest.raises(ValueError) as error:
    find_circuit(model, pairs, **({"threshold": 0.1} | options))
  for part in parts:
    assert part in str(error.value)


def test_models_that_norm_what_parts_write_are_refused():
  model, _ = random_model(PUBLIC["gemma2"], dtype="float32")
  pairs = random_pairs(PUBLIC["gemma2"], [5, 6], [1, 3])
  with pytest.raises(ValueError, match="cannot be split"):
    find_circuit(model, pairs, 0.1)
