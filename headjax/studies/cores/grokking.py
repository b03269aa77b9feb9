"""When does a model know the sums that it was shown, and when the others?

All seeds at all weight decays are trained in one program until everything is
known.

Source: paper D, the sweeps over weight decay and modulus.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headjax.data.modular import Additions, additions
from headjax.studies.cores.members import Setup, epoch_rows
from headjax.studies.cores.modular import ANSWER

KNOWN = 0.99  # accuracy from which sums count as known


class GrokTime(NamedTuple):
  """When a model knew the sums it was shown, and those it was not.

  Attributes:
    p: the modulus.
    weight_decay: of the training.
    seed: of the model.
    train_epoch: the first measured one with accuracy KNOWN; nan if none.
    test_epoch: the same of the sums that were kept back; nan if none, which
      is a time longer than `epochs`.
    epochs: trained.
  """

  p: int
  weight_decay: float
  seed: int
  train_epoch: float
  test_epoch: float
  epochs: int

  @property
  def delay(self) -> float:
    """Epochs between the two; infinite where the second never came."""
    if np.isnan(self.test_epoch):
      return float("inf")
    return self.test_epoch - self.train_epoch


def grok_times(
  setup: Setup, p: int, weight_decay: Sequence[float], every: int
) -> list[GrokTime]:
  """Trains members at several weight decays until all know all sums.

  All seeds at all weight decays are one program.

  Args:
    setup: of the members; its seeds are used at every weight decay.
    p: the modulus.
    weight_decay: values.
    every: epochs between measurements.
  """
  sums: Additions = additions(p)
  seeds = setup.seeds * len(weight_decay)
  decay = np.repeat(np.asarray(weight_decay, float), len(setup.seeds))
  many = dataclasses.replace(setup, seeds=seeds)
  ensemble = many.ensemble(first=ANSWER, weight_decay=decay)
  state, known = ensemble.init(), np.full((2, len(seeds)), np.nan)
  epoch = 0
  while epoch < setup.epochs and np.isnan(known).any():
    epochs = range(epoch, min(epoch + every, setup.epochs))
    rows = epoch_rows(seeds, epochs, len(sums.train), setup.batch_size)
    state, _ = ensemble.advance(state, sums.train, rows)
    epoch = epochs.stop
    for line, part in zip(known, sums, strict=True):
      line[np.isnan(line) & (ensemble.accuracy(state, part) >= KNOWN)] = epoch
  return [
    GrokTime(p, float(wd), seed, *known[:, i].tolist(), epoch)
    for i, (seed, wd) in enumerate(zip(seeds, decay, strict=True))
  ]
