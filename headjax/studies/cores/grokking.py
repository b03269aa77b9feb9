"""When does a model know the sums that it was shown, and when the others?

All seeds at all weight decays are trained in one program until everything is
known.

Source: paper D, the sweeps over weight decay and modulus.
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headjax.data.modular import Additions, additions
from headjax.studies.cores.members import Setup, epoch_rows
from headjax.studies.cores.modular import ANSWER
from headjax.studies.cores.progress import Progress

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
  setup: Setup,
  p: int,
  weight_decay: Sequence[float],
  every: int,
  path: str | os.PathLike | None = None,
) -> list[GrokTime]:
  """Trains members at several weight decays, each until it knows all sums.

  All seeds at all weight decays are one program.

  Args:
    setup: of the members; its seeds are used at every weight decay.
    p: the modulus.
    weight_decay: values.
    every: epochs between measurements.
    path: of the file in which the training is kept, and from which it goes on;
      None keeps nothing.
  """
  sums: Additions = additions(p)
  seeds = setup.seeds * len(weight_decay)
  decay = np.repeat(np.asarray(weight_decay, float), len(setup.seeds))
  many = dataclasses.replace(setup, seeds=seeds)
  ensemble = many.ensemble(first=ANSWER, weight_decay=decay)
  keep = path and Progress(path, f"{many} p={p} {decay.tolist()} every={every}")
  known, trained = np.full((2, len(seeds)), np.nan), np.zeros(len(seeds), int)
  state, epoch = ensemble.init(), 0
  found = keep and keep.load(state)
  if found:
    state, facts = found
    known, trained = np.array(facts["known"], float), np.array(facts["trained"])
    epoch = facts["epoch"]
  while epoch < setup.epochs and np.isnan(known).any():
    epochs = range(epoch, min(epoch + every, setup.epochs))
    rows = epoch_rows(seeds, epochs, len(sums.train), setup.batch_size)
    active = np.isnan(known).any(axis=0)
    state, _ = ensemble.advance(state, sums.train, rows, active)
    epoch = epochs.stop
    trained[active] = epoch
    for line, part in zip(known, sums, strict=True):
      line[np.isnan(line) & (ensemble.accuracy(state, part) >= KNOWN)] = epoch
    if keep:
      keep.save(
        state, epoch=epoch, known=known.tolist(), trained=trained.tolist()
      )
  return [
    GrokTime(p, float(wd), seed, *known[:, i].tolist(), int(trained[i]))
    for i, (seed, wd) in enumerate(zip(seeds, decay, strict=True))
  ]
