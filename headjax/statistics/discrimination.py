"""How well does a number tell two groups apart? The area under the curve."""

import numpy as np
from scipy.stats import rankdata

from headjax.checks import check


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
  """The chance that a random positive has the larger score; a tie is half.

  Args:
    scores: `[n]`.
    labels: `[n]` bool, both values among them.

  Returns:
    In [0, 1]: 0.5 where the scores say nothing, below where they are reversed.

  Examples:
    >>> auc(np.array([1.0, 2, 3, 4]), np.array([False, True, False, True]))
    0.75

  Source: Mann and Whitney (1947), U over the number of pairs.
  """
  labels = np.asarray(labels, bool)
  positive, negative = labels.sum(), (~labels).sum()
  check(
    positive > 0 and negative > 0,
    "labels",
    f"{positive} positive and {negative} negative",
    "at least one of each",
    "give prompts of both kinds",
  )
  ranks = rankdata(scores)[labels].sum()
  return float((ranks - positive * (positive + 1) / 2) / (positive * negative))
