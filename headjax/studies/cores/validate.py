"""Is a core sufficient, and is it necessary? Scores over its rank.

A score is a number of the model under an edit, such as the accuracy. Sufficient
is the smallest rank with which alone the model is as good as before; necessary
the smallest without which it is at chance. Random subspaces and the principal
axes of the activations, of the same rank, are the controls.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headjax.geometry.cores import principal_axes, random_core
from headjax.interventions.projections import project
from headjax.models.config import ModelConfig
from headjax.models.sites import Edits
from headjax.studies.cores.extract import Extracted

Score = Callable[[Edits], float]
Rows = Sequence[Mapping[str, Any]]


def curve(
  config: ModelConfig,
  layer: int,
  basis: np.ndarray,
  score: Score,
  ranks: Sequence[int],
  *,
  kinds: Sequence[str] = ("keep", "remove"),
  mean: np.ndarray | None = None,
  site: str = "resid_post",
) -> list[dict[str, Any]]:
  """Scores when a subspace alone is kept, and when it is removed.

  Args:
    config: of the model.
    layer: of the core.
    basis: `[d, k]` orthonormal columns, the most important first.
    score: of the model under an edit.
    ranks: how many columns are taken; at most k of them are.
    kinds: of projections.
    mean: `[d]`, the centre of the projections; None means 0.
    site: of the core.

  Returns:
    One row a rank: `rank`, and a score for each kind.
  """

  def one(kind, rank):
    edits = project(config, layer, basis[:, :rank], kind, site=site, mean=mean)
    return float(score(edits))

  ranks = [rank for rank in ranks if rank <= basis.shape[1]]
  return [
    {"rank": rank} | {kind: one(kind, rank) for kind in kinds} for rank in ranks
  ]


def sufficient_rank(rows: Rows, base: float, slack: float = 1e-3) -> int | None:
  """The smallest rank whose keep score is at least base - slack.

  None if there is none.
  """
  fits = [row["rank"] for row in rows if row["keep"] >= base - slack]
  return min(fits, default=None)


def necessary_rank(rows: Rows, chance: float, at_least: int = 0) -> int | None:
  """The smallest rank, from `at_least` on, whose remove score is by chance.

  None if there is none.

  Args:
    rows: of `curve`.
    chance: the score up to which a model knows nothing.
    at_least: the rank that the core's singular values ask for.
  """
  fits = [
    row["rank"]
    for row in rows
    if row["rank"] >= at_least and row["remove"] <= chance
  ]
  return min(fits, default=None)


def first_rank(
  config: ModelConfig,
  layer: int,
  basis: np.ndarray,
  score: Score,
  kind: str,
  start: int,
  fits: Callable[[float], bool],
) -> int | None:
  """The smallest rank, from `start` on, whose score fits; None if none does.

  The same as a whole curve would tell, and stops there.

  Args:
    config: of the model.
    layer: of the core.
    basis: `[d, k]` orthonormal columns, the most important first.
    score: of the model under an edit.
    kind: of projection.
    start: the first rank that is tried.
    fits: whether a score is good enough.
  """
  for rank in range(start, basis.shape[1] + 1):
    [row] = curve(config, layer, basis, score, [rank], kinds=(kind,))
    if fits(row[kind]):
      return rank
  return None


def controls(
  config: ModelConfig,
  layer: int,
  found: Extracted,
  score: Score,
  rank: int,
  *,
  draws: int = 5,
  seed: int = 0,
  kinds: Sequence[str] = ("keep", "remove"),
  mean: np.ndarray | None = None,
  site: str = "resid_post",
) -> list[dict[str, Any]]:
  """The scores of a core beside those of subspaces that are not the core.

  Args:
    config: of the model.
    layer: of the core.
    found: the core and its activations.
    score: of the model under an edit.
    rank: of all subspaces.
    draws: random subspaces.
    seed: of the first of them.
    kinds: of projections.
    mean: the centre of the projections; None means 0.
    site: of the core.

  Returns:
    One row a subspace: `subspace` ("core", "pca" or "random"), `rank` and a
    score for each kind.
  """
  d = len(found.covariance)
  spaces = [
    ("core", found.core.span(rank)),
    ("pca", principal_axes(found.covariance)[:, :rank]),
  ] + [("random", random_core(d, rank, seed + i)) for i in range(draws)]
  about = {"kinds": kinds, "mean": mean, "site": site}
  return [
    {"subspace": name} | row
    for name, basis in spaces
    for row in curve(config, layer, basis, score, [rank], **about)
  ]
