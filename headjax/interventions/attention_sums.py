"""How much do heads attend to marked keys, to others, and to random ones?

The attention of rows at their queries is added up chunk by chunk, in float64.
"""

import numpy as np

from headjax.checks import check
from headjax.data.probes import Probe, baseline_keys, eligible


class AttentionSums:
  """Means over the rows of a probe that are added one chunk after the other.

  Attributes:
    kinds: the probe's kinds of keys.
    examples: `[kind]`, in how many rows there is such a key.
    n_eligible: mean number of keys of a row that stand for no kind by place.
  """

  def __init__(self, probe: Probe, *, draws: int = 500, seed: int = 2026):
    """Draws the random keys of all rows.

    Args:
      probe: the rows.
      draws: how often every row gets another random key.
      seed: of these; the seed of the baseline is the source's, 0.
    """
    self.kinds = tuple(probe.targets)
    self._targets = [np.asarray(keys) for keys in probe.targets.values()]
    self.examples = np.array([(k >= 0).any(1).sum() for k in self._targets])
    self._baseline = baseline_keys(probe)
    self._null = _random_keys(eligible(probe, targets=False), draws, seed)
    self.n_eligible = float(eligible(probe, targets=True).sum(1).mean())
    self._n, self._seen = len(probe), 0
    self._sums = None

  def add(self, place: slice, pattern: np.ndarray) -> None:
    """Adds some rows.

    Args:
      place: which they are among all rows.
      pattern: `[example, layer, head, pos]` attention at their queries.
    """
    parts = [
      np.stack([_mean(pattern, k[place]).sum(0) for k in self._targets]),
      _mean(pattern, self._baseline[place]).sum(0),
      _taken(pattern, self._null[place]).sum(0),
    ]
    if self._sums is None:
      self._sums = parts
    else:
      self._sums = [a + b for a, b in zip(self._sums, parts, strict=True)]
    self._seen += len(pattern)

  def means(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The means over all rows; NaN for a kind that no row has.

    Returns:
      To marked keys, `[kind, layer, head]`, over the rows that have some; to
      the baseline's, `[layer, head]`; to random ones, `[draw, layer, head]`.
    """
    check(
      self._seen == self._n,
      "rows",
      self._seen,
      f"all {self._n} of the probe",
      "add every chunk once",
    )
    marked, baseline, null = self._sums
    count = np.where(self.examples, self.examples, np.nan)[:, None, None]
    return (
      marked / count,
      baseline / self._n,
      np.moveaxis(null, -1, 0) / self._n,
    )


def _taken(pattern: np.ndarray, keys: np.ndarray) -> np.ndarray:
  """`[example, layer, head, key]`: the attention to some keys of each row."""
  index = np.maximum(keys, 0)[:, None, None, :]
  return np.take_along_axis(pattern, index, axis=-1)


def _mean(pattern: np.ndarray, keys: np.ndarray) -> np.ndarray:
  """`[example, layer, head]`: over a row's keys; 0 where it has none."""
  there = (keys >= 0)[:, None, None, :]
  total = np.where(there, _taken(pattern, keys), 0).sum(-1)
  return total / np.maximum(there.sum(-1), 1)


def _random_keys(free: np.ndarray, draws: int, seed: int) -> np.ndarray:
  """`[example, draw]`: an eligible key each time."""
  count = free.sum(1)
  check(
    bool(count.all()),
    "probe",
    f"{(count == 0).sum()} rows without a key that stands for no kind",
    "at least one such key before every query",
    "take longer rows",
  )
  order = np.argsort(~free, axis=1, kind="stable")
  uniform = np.random.RandomState(seed).random_sample((len(free), draws))
  chosen = (uniform * count[:, None]).astype(np.int64)
  return np.take_along_axis(order, chosen, axis=1)
