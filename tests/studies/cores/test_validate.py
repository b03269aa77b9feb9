"""Do curves find the planted ranks, and controls not?"""

import jax
import numpy as np
from helpers import GPT2

from headjax.geometry.cores import Core
from headjax.studies.cores.extract import Extracted
from headjax.studies.cores.validate import (
  controls,
  curve,
  necessary_rank,
  sufficient_rank,
)

D, LAYER = GPT2.d_model, 1


def score(edits):
  """How much of coordinates 0 and 1 a vector of ones still has."""
  x = np.ones((3, 1, 1, D), np.float32)
  for edit in edits.resid_post:
    x = np.stack([np.asarray(one(x[i])) for i, one in enumerate(layers(edit))])
  return float(np.abs(x[LAYER, 0, 0, :2]).min())


def layers(edit):
  """The edit, layer by layer, as the scan sees it."""
  return [jax.tree.map(lambda leaf, i=i: leaf[i], edit) for i in range(3)]


def test_ranks_of_a_planted_subspace():
  rows = curve(GPT2, LAYER, np.eye(D), score, range(5))
  assert [row["keep"] for row in rows] == [0, 0, 1, 1, 1]
  assert [row["remove"] for row in rows] == [1, 0, 0, 0, 0]
  assert sufficient_rank(rows, base=1) == 2
  assert necessary_rank(rows, chance=0) == 1
  assert necessary_rank(rows, chance=0, at_least=3) == 3
  assert sufficient_rank(rows, base=2) is None
  assert necessary_rank(rows, chance=-1) is None


def test_a_little_slack_is_allowed():
  rows = [{"rank": 1, "keep": 0.9985}, {"rank": 2, "keep": 0.9991}]
  assert sufficient_rank(rows, base=1.0) == 2
  assert sufficient_rank(rows, base=1.0, slack=0.002) == 1


def test_centred_curves_project_around_the_mean():
  mean = np.full(D, 3.0)
  [row] = curve(
    GPT2, LAYER, np.eye(D)[:, 2:4], score, [2],
    kinds=("keep", "flip"), mean=mean,
  )  # fmt: skip
  assert row == {"rank": 2, "keep": 3, "flip": 1}


def test_ranks_beyond_the_basis_are_left_out():
  rows = curve(GPT2, LAYER, np.eye(D)[:, :2], score, [1, 2, 3])
  assert [row["rank"] for row in rows] == [1, 2]


def test_controls_have_the_rank_and_their_own_subspaces():
  core = Core(np.eye(D)[:, :2], np.ones(2))
  covariance = np.diag([1.0, 1, 9, 9, *[0.5] * (D - 4)])
  found = Extracted(core, np.zeros(D), covariance, 5, 5)
  rows = controls(GPT2, LAYER, found, score, 2, draws=3)
  names = [row["subspace"] for row in rows]
  assert names == ["core", "pca", "random", "random", "random"]
  assert [row["keep"] for row in rows[:2]] == [1, 0]
  assert [row["remove"] for row in rows[:2]] == [0, 1]
  assert len({row["keep"] for row in rows[2:]}) == 3
