"""Does the search keep what it should, one by one and by speculation?"""

import itertools

import numpy as np
import pytest
from helpers import GPT2, PUBLIC

from headjax.interventions import acdc, nodes

THERE = nodes.possible(GPT2)
RECEIVERS = [str(node) for node in nodes.receivers(GPT2)]
SENDERS = [str(node) for node in nodes.senders(GPT2)]
PLANTED = [
  ("unembedding", "L2H1"), ("L2H1.Q", "L1.mlp"), ("L2H1.V", "embedding"),
  ("L1.mlp", "L0H3"), ("L1.mlp", "positions"), ("L0H3.K", "embedding"),
]  # fmt: skip


def index(edge):
  return RECEIVERS.index(edge[0]), SENDERS.index(edge[1])


def planted(masks, layer):
  """One for each planted edge that is missing."""
  return np.array(
    [sum(not mask[index(edge)] for edge in PLANTED) for mask in masks], float
  )


def bumpy(masks, layer):
  """A metric in which each decision depends on all those before it."""
  weights = np.random.default_rng(3).normal(0.2, 1, THERE.shape)
  lost = ((THERE & ~masks.astype(bool)) * weights).sum((1, 2))
  return np.abs(np.sin(3 * lost)) * np.minimum(np.abs(lost), 5)


def test_a_planted_circuit_is_found():
  found = acdc.search(GPT2, planted, 0.5)
  kept = {(RECEIVERS[r], SENDERS[s]) for r, s in np.argwhere(found.present)}
  assert kept == set(PLANTED)
  assert found.value == 0 and found.decisions == found.batches
  assert {found.rise[index(edge)] for edge in PLANTED} == {1.0}


def test_parts_that_nothing_reads_are_dropped_without_a_decision():
  found = acdc.search(GPT2, planted, 0.5)
  decided = {RECEIVERS[r] for r, _ in np.argwhere(~np.isnan(found.rise))}
  assert decided == {
    "unembedding", "L2H1.Q", "L2H1.K", "L2H1.V", "L1.mlp",
    "L0H3.Q", "L0H3.K", "L0H3.V",
  }  # fmt: skip
  expected = sum(THERE[RECEIVERS.index(name)].sum() for name in decided)
  assert found.decisions == expected < THERE.sum()


def one_by_one(evaluate, threshold):
  """The definition, written as one loop; returns the visits besides."""
  present, visits = THERE.copy(), []
  value = evaluate(present[None], 0)[0]
  layers = [["unembedding"]]
  for layer in reversed(range(GPT2.n_layers)):
    layers.append([f"L{layer}.mlp"])
    for head in reversed(range(GPT2.n_heads)):
      layers.append([f"L{layer}H{head}.{letter}" for letter in "QKV"])
  for name in itertools.chain(*layers):
    r, part = RECEIVERS.index(name), name.split(".")[0]
    own = name if "mlp" in name else part
    if own in SENDERS and not present[:, SENDERS.index(own)].any():
      present[r] = False
      continue
    for s in reversed(range(len(SENDERS))):
      if not present[r, s]:
        continue
      visits.append((r, s))
      present[r, s] = False
      new = evaluate(present[None], 0)[0]
      if new - value < threshold:
        value = new
      else:
        present[r, s] = True
  return present, visits, value


@pytest.mark.parametrize("threshold", [0.01, 0.3, 1.0])
def test_speculation_changes_nothing_but_the_number_of_batches(threshold):
  present, visits, value = one_by_one(bumpy, threshold)
  alone = acdc.search(GPT2, bumpy, threshold)
  assert 10 < present.sum() < THERE.sum() - 10, "the test would prove nothing"
  np.testing.assert_array_equal(alone.present, present)
  assert alone.value == value and alone.decisions == len(visits)
  assert sorted(map(tuple, np.argwhere(~np.isnan(alone.rise)))) == (
    sorted(visits)
  )
  for speculate in (2, 7, 500):
    found = acdc.search(GPT2, bumpy, threshold, speculate=speculate)
    np.testing.assert_array_equal(found.present, present)
    np.testing.assert_array_equal(found.rise, alone.rise)
    assert found.value == value and found.decisions == len(visits)
    assert found.batches < alone.batches


def test_batches_have_few_sizes_and_lack_edges_late():
  """So that there are few programs, and earlier layers can be left out."""
  shapes, layers = set(), []
  late = np.array([node.layer for node in nodes.receivers(GPT2)])
  late[-1] = GPT2.n_layers

  def watched(masks, layer):
    shapes.add(masks.shape)
    layers.append(layer)
    lacking = (THERE & ~masks.astype(bool)).any((0, 2))
    assert not lacking[late < layer].any()
    return planted(masks, layer)

  acdc.search(GPT2, watched, 0.5, speculate=7)
  assert shapes == {(n, *THERE.shape) for n in (1, 4, 7)}
  assert layers[0] == 0 and layers[1] == GPT2.n_layers and 1 in layers[2:]
  assert layers[1:] == sorted(layers[1:], reverse=True)


@pytest.mark.parametrize(("threshold", "kept"), [(1e-9, True), (1e9, False)])
def test_the_guess_follows_what_was_decided(threshold, kept):
  """Where all edges stay, or none, most batches are accepted whole."""

  def strict(masks, layer):
    return (THERE & ~masks.astype(bool)).sum((1, 2)) * 1.0

  found = acdc.search(GPT2, strict, threshold, speculate=16)
  assert found.present.any() == kept
  assert found.batches < 4 + found.decisions / 8 + 3 * GPT2.n_layers


def test_progress_counts_the_decisions():
  done = []
  found = acdc.search(GPT2, planted, 0.5, speculate=9, progress=done.append)
  assert done[-1] == found.decisions and done == sorted(set(done))


def test_a_parallel_block_has_an_order_too():
  found = acdc.search(
    PUBLIC["neox"], lambda masks, layer: np.zeros(len(masks)), 0.1, speculate=50
  )
  assert not found.present.any()


@pytest.mark.parametrize(
  ("options", "text"),
  [
    ({"threshold": 0}, "threshold: got 0"),
    ({"threshold": 1, "speculate": 0}, "speculate: got 0"),
  ],
)
def test_bad_numbers_are_refused(options, text):
  with pytest.raises(ValueError, match=text):
    acdc.search(GPT2, planted, **options)


def test_a_metric_that_does_not_begin_at_zero_is_refused():
  with pytest.raises(ValueError, match="0.1 with all edges"):
    acdc.search(GPT2, lambda masks, layer: planted(masks, layer) + 0.1, 0.5)
