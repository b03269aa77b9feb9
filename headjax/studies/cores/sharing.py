"""What do models of one chain share: weights, directions, or coordinates?

Spaces are compared by the overlap of their projectors, beside that of random
spaces; coordinates on the same text by canonical correlations, beside those
with the text of one model permuted.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from headjax.geometry.alignment import (
  canonical_correlations,
  consensus,
  overlap,
  weight_cosine,
)
from headjax.geometry.cores import random_core
from headjax.models.checksums import named_leaves
from headjax.models.load import LoadedModel
from headjax.studies.cores.markov import LENGTH, Subject
from headjax.studies.cores.validate import curve


def pair_rows(
  subjects: Sequence[Subject], seed: int = 0
) -> list[dict[str, Any]]:
  """One row a pair of models: where their cores lie, and what they hold.

  Args:
    subjects: two or more, on the same text.
    seed: of the permutation of the tokens, the control of the correlations.
  """
  rows = []
  for a, b in itertools.combinations(subjects, 2):
    x, y = (s.states().reshape(-1, s.rank) for s in (a, b))
    shuffled = np.random.default_rng(seed).permutation(len(y))
    spans = [s.found.core.span(s.rank) for s in (a, b)]
    rows.append(
      {
        "models": f"{a.model.name} {b.model.name}",
        "weight cosine": weight_cosine(matrices(a.model), matrices(b.model)),
        "overlap": overlap(*spans),
        "chance overlap": float(np.sqrt(a.rank * b.rank) / len(spans[0])),
        "chance, 97.5%": chance_overlap(len(spans[0]), a.rank, b.rank),
        "cca": float(canonical_correlations(x, y).mean()),
        "least cca": float(canonical_correlations(x, y).min()),
        "permuted cca": float(canonical_correlations(x, y[shuffled]).mean()),
      }
    )
  return rows


def chance_overlap(d: int, r: int, s: int, draws: int = 1000) -> float:
  """What 97.5% of random spaces of two ranks overlap less than."""
  found = [
    overlap(random_core(d, r, 2 * i), random_core(d, s, 2 * i + 1))
    for i in range(draws)
  ]
  return float(np.quantile(found, 0.975))


def matrices(model: LoadedModel) -> dict[str, Any]:
  """The parameters that start at random: gains start at 1 in every model."""
  return {
    name: leaf
    for name, leaf in named_leaves(model.params).items()
    if name.rpartition(".")[2].startswith("W_")
  }


def consensus_rows(subjects: Sequence[Subject]) -> list[dict[str, Any]]:
  """What the activations of all models share, without looking for a task.

  One row a model: the consensus of the core's rank, where this model holds it,
  and the scores of keeping and removing that subspace.
  """
  rank = subjects[0].rank
  n = len(subjects[0].scored) * (LENGTH - 1)
  found = consensus([s.activations[:n] for s in subjects], rank)
  rows = []
  for subject, basis in zip(subjects, found.bases, strict=True):
    [scores] = curve(
      subject.model.config, subject.layer, basis, subject.accuracy, [rank]
    )
    rows.append(
      {
        "model": subject.model.name,
        "agreement": float(found.agreement.min()),
        "overlap with core": overlap(
          basis, subject.found.core.span(subject.rank)
        ),
        **scores,
      }
    )
  return rows
