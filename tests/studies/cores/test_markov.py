"""Are cores, dynamics and comparisons those of exact constructions?"""

import numpy as np
import pytest

from configs import base
from configs.cores import get_config
from headjax.data import markov as chain
from headjax.geometry.alignment import overlap
from headjax.geometry.cores import random_core
from headjax.geometry.operators import eigenvalue_error
from headjax.studies.cores import markov, sharing
from headjax.studies.cores.members import setup


def test_the_oracle_explains_half():
  found = markov.oracle(chain.sequences(20_000, 32, 0))
  assert abs(found.r2 - 0.5) < 0.005
  assert abs(found.r2_pooled - 0.5) < 0.005
  values = found.eigenvalues[np.argsort(-np.abs(found.eigenvalues))][:3]
  assert eigenvalue_error(values, chain.nontrivial_eigenvalues()) < 0.01


def test_any_exact_embedding_moves_as_the_chain():
  tokens = chain.sequences(20_000, 32, 1)
  embedding = np.random.default_rng(0).normal(size=(4, 3))
  found = markov.step_operator(embedding[tokens])
  expected = chain.nontrivial_eigenvalues()
  assert eigenvalue_error(found.eigenvalues, expected) < 0.01


def small():
  config = get_config("markov")
  base.override(config, {
    "seeds": (0, 1), "model.d_model": 16, "model.n_heads": 2,
    "model.d_head": 8, "model.d_mlp": 32, "train.epochs": 25,
    "optimizer.peak": 1e-2, "optimizer.final": 1e-2,
  })  # fmt: skip
  return setup(config)


@pytest.fixture(scope="module")
def subjects():
  models = markov.train(small(), 600)
  tokens = chain.sequences(60, 32, markov.TEST_SEED)
  return [markov.Subject(model, tokens) for model in models]


@pytest.mark.slow
def test_small_models_have_the_cores_of_the_paper(subjects):
  found = markov.model_rows(subjects, draws=2)
  for row in found:
    assert row["rank"] == 3
    assert row["accuracy"] > 0.72
    assert row["keep core"] > row["accuracy"] - 0.02
    assert row["remove core"] < 0.35
    assert abs(row["oracle r2"] - 0.5) < 0.05
    assert row["eigenvalue error"] < 0.1  # of 1,800 steps of text
    assert row["r2 / oracle"] > 0.95
  [pair] = sharing.pair_rows(subjects)
  assert pair["cca"] > 0.9 and pair["permuted cca"] < 0.15
  assert pair["chance overlap"] == 3 / 16
  assert len(sharing.consensus_rows(subjects)) == 2
  rows = markov.curve_rows(subjects, (1, 3))
  assert len(rows) == 4
  assert rows[1]["keep"] == found[0]["keep core"]


def test_few_random_spaces_overlap_more_than_chance_says():
  bound = sharing.chance_overlap(12, 2, 3, draws=200)
  some = [
    overlap(random_core(12, 2, 5000 + i), random_core(12, 3, 9000 + i))
    for i in range(200)
  ]
  assert 0.01 < np.mean(np.array(some) > bound) < 0.06
  assert bound > np.mean(some) == pytest.approx(6**0.5 / 12, rel=0.1)
