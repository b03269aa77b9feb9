"""Do models of one chain share its dynamics, and no direction? Experiment 1.

Models that differ in their seed learn the same chain. Each has a core of three
directions, as many as the transition matrix has nontrivial eigenvalues. The
cores lie in different places of the stream and hold the same coordinates up to
a linear map; the map from one position to the next has the eigenvalues of the
chain in all of them.

Source: paper D, the Markov chain. See `configs/cores.py` for how the models
  differ from the paper's.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from headjax.data import markov as chain
from headjax.geometry.operators import Operator, dynamics, eigenvalue_error
from headjax.models.load import LoadedModel
from headjax.models.sites import Edits
from headjax.studies.cores.activations import activations
from headjax.studies.cores.extract import Extracted, extract
from headjax.studies.cores.members import Setup, as_models, epoch_rows
from headjax.studies.cores.outputs import each, outputs_under
from headjax.studies.cores.validate import controls, curve

SHARE = 0.999  # of the squared singular values, by which the rank is chosen
JACOBIANS = 128
LENGTH = 32  # tokens of a sequence
TRAIN_SEED, TEST_SEED = 0, 999


def train(setup: Setup, n_sequences: int = 3000) -> list[LoadedModel]:
  """Trains all members on the chain, all in one program."""
  data = chain.sequences(n_sequences, LENGTH, TRAIN_SEED)
  ensemble = setup.ensemble()
  rows = epoch_rows(
    setup.seeds, range(setup.epochs), len(data), setup.batch_size
  )
  state, _ = ensemble.advance(ensemble.init(), data, rows)
  return as_models(ensemble, state, setup.name)


class Subject:
  """A trained model, its core, and the states of the core on the test text.

  Attributes:
    model: the model.
    tokens: the test text.
    scored: the part of it on which accuracies are measured.
    found: the core of the last block's output.
    rank: by the rule of the singular values.
  """

  def __init__(
    self, model: LoadedModel, tokens: np.ndarray, scored: int | None = None
  ):
    """Extracts the core.

    Args:
      model: trained on the chain.
      tokens: `[sequence, LENGTH]` test text.
      scored: sequences on which accuracies are measured; None means all.
    """
    self.model, self.tokens, self.scored = model, tokens, tokens[:scored]
    self.layer = model.config.n_layers - 1
    inputs = tokens[:, :-1]
    self.found: Extracted = extract(
      model, inputs, each(chain.N_STATES), every_position=True,
      jacobians=min(JACOBIANS, len(inputs)), examples=256,
    )[-1]  # fmt: skip
    self.rank = self.found.core.rank(SHARE)

  def accuracy(self, edits: Edits = Edits()) -> float:
    """How often the likeliest state comes next, under an edit."""
    logits = outputs_under(
      self.model, self.scored[:, :-1], each(chain.N_STATES), edits,
      every_position=True, examples=256,
    )  # fmt: skip
    return float((logits.argmax(-1) == self.scored[:, 1:]).mean())

  @functools.cached_property
  def activations(self) -> np.ndarray:
    """`[sequence * pos, d]`, at the core's site."""
    return activations(
      self.model, self.tokens[:, :-1], self.layer, every_position=True,
      examples=256,
    )  # fmt: skip

  def states(self) -> np.ndarray:
    """`[sequence, pos, rank]` coordinates in the core."""
    found = self.activations @ self.found.core.span(self.rank)
    return found.reshape(len(self.tokens), -1, self.rank)

  def operator(self) -> Operator:
    """The map from the states at a position to those at the next one."""
    return step_operator(self.states())


def step_operator(states: np.ndarray) -> Operator:
  """The dynamics of `[sequence, pos, r]` states."""
  r = states.shape[-1]
  return dynamics(states[:, :-1].reshape(-1, r), states[:, 1:].reshape(-1, r))


def oracle(tokens: np.ndarray) -> Operator:
  """The dynamics of the chain itself, in three coordinates of its states.

  What it misses of the chain's eigenvalues is the chance of this text.
  """
  states = np.eye(chain.N_STATES)[:, 1:]  # the fourth follows from these
  return step_operator(states[tokens[:, :-1]])


def chain_error(found: Operator) -> float:
  """The largest relative error of the chain's eigenvalues; nan if too many."""
  expected = chain.nontrivial_eigenvalues()
  if len(found.eigenvalues) != len(expected):
    return float("nan")
  return eigenvalue_error(found.eigenvalues, expected)


def model_rows(
  subjects: Sequence[Subject], draws: int = 5
) -> list[dict[str, Any]]:
  """One row a model: its core, what edits of it do, and its map."""
  rows = []
  for subject in subjects:
    found, best = subject.operator(), oracle(subject.tokens)
    others = controls(
      subject.model.config, subject.layer, subject.found, subject.accuracy,
      subject.rank, draws=draws,
    )  # fmt: skip
    scores = {
      f"{kind} {name}": float(
        np.mean([row[kind] for row in others if row["subspace"] == name])
      )
      for name in ("core", "pca", "random")
      for kind in ("keep", "remove")
    }
    rows.append(
      {
        "model": subject.model.name,
        "rank": subject.rank,
        "accuracy": subject.accuracy(),
        **scores,
        "eigenvalues": " ".join(f"{v:.4f}" for v in found.eigenvalues),
        "eigenvalue error": chain_error(found),
        "oracle error": chain_error(best),
        "r2": found.r2,
        "r2 pooled": found.r2_pooled,
        "oracle r2": best.r2,
        "r2 / oracle": found.r2 / best.r2,
      }
    )
  return rows


def curve_rows(
  subjects: Sequence[Subject], ranks: Sequence[int]
) -> list[dict[str, Any]]:
  """One row a model and rank: keep and remove scores."""
  return [
    {"model": subject.model.name} | row
    for subject in subjects
    for row in curve(
      subject.model.config, subject.layer, subject.found.core.basis,
      subject.accuracy, ranks,
    )
  ]  # fmt: skip
