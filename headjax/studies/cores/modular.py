"""How does the core of modular addition form, and how does it grow?

Models learn a + b = c modulo p from half of the sums; long after these are
known, the others are, too (grokking). Along training each model has a core, the
rank that suffices, the rank that must be removed until nothing is left, and the
map that moves the core from one sum c to c + 1, whose eigenvalues are p-th
roots of unity where the model computes on circles. From one epoch on, copies go
on without weight decay.

Source: paper D, modular addition. See `configs/cores.py` for how the models
  differ from the paper's.
"""

import functools
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from headjax.data.modular import additions
from headjax.geometry.operators import (
  Cyclic,
  cyclic_operator,
  residue_means,
)
from headjax.models.load import LoadedModel
from headjax.models.sites import Edits
from headjax.studies.cores.activations import activations
from headjax.studies.cores.extract import Extracted, extract
from headjax.studies.cores.members import Setup, as_models, epoch_rows
from headjax.studies.cores.outputs import each, outputs_under
from headjax.studies.cores.progress import Progress
from headjax.studies.cores.validate import first_rank

SHARE = 0.99  # of the squared singular values, by which the rank is chosen
SLACK = 1e-3  # of accuracy, that a sufficient core may lose
JACOBIANS = 3000  # at most
HELD_OUT = 0.075  # of the residues, for the map
ANSWER = 1  # the position whose prediction is the sum


class Moment(NamedTuple):
  """All models at one epoch.

  Attributes:
    branch: "decay", or "none" for the copies without weight decay.
    epoch: passes over the data so far.
    models: one a member.
  """

  branch: str
  epoch: int
  models: list[LoadedModel]


def measured_epochs(train: Any) -> list[int]:
  """The epochs at which there is a measurement.

  Args:
    train: the section of a config: every `every` epochs up to `early`, then
      every `late`, the last one, and that of the branch.
  """
  early = range(0, min(train.early, train.epochs) + 1, train.every)
  late = range(train.early, train.epochs + 1, train.late)
  found = {*early, *late, train.epochs, train.branch}
  return sorted(epoch for epoch in found if epoch <= train.epochs)


def moments(
  setup: Setup,
  p: int,
  epochs: Sequence[int],
  branch: int = 0,
  folder: str | os.PathLike | None = None,
) -> Iterator[Moment]:
  """Trains all members and stops at some epochs, with and without decay.

  Args:
    setup: of the members; the weight decay is the recipe's.
    p: the modulus.
    epochs: ascending, at which there is a moment; the branch is among them.
    branch: epoch from which copies without weight decay go on, with a new
      optimiser, after all of the others; 0 means none.
    folder: where the states are kept, each after its moment was used. A run
      that finds some there goes on from the last one of either branch, whose
      moment comes again. None keeps nothing.
  """
  about = f"{setup} p={p} epochs={list(epochs)} branch={branch}"

  def keep(name):
    if folder is not None:
      return Progress(pathlib.Path(folder) / f"state-{name}.npz", about)

  stops = functools.partial(_stops, setup, additions(p).train, epochs)
  ensemble, copies = setup.ensemble(first=ANSWER), None
  free = setup.ensemble(first=ANSWER, weight_decay=np.zeros(1))
  for state, epoch in stops(ensemble, ensemble.init(), 0, keep("decay")):
    if branch and epoch == branch:
      copies = free.init().replace(params=jax.tree.map(jnp.copy, state.params))
      if folder is not None:
        keep("none").save(copies, epoch=branch)
    yield Moment("decay", epoch, as_models(ensemble, state, setup.name))
  if branch:
    for state, epoch in stops(free, copies, branch, keep("none")):
      if epoch > branch:
        yield Moment("none", epoch, as_models(free, state, setup.name))


def _stops(setup, data, epochs, ensemble, state, begin, keep):
  """The states at some epochs, from the last one that was kept."""
  found = keep.load(ensemble.init()) if keep else None
  if found:
    state, begin = found[0], found[1]["epoch"]
  for end in [epoch for epoch in epochs if epoch >= begin]:
    if end > begin:
      rows = epoch_rows(
        setup.seeds, range(begin, end), len(data), setup.batch_size
      )
      state, _ = ensemble.advance(state, data, rows)
    begin = end
    yield state, end
    if keep:
      keep.save(state, epoch=end)


class Subject:
  """A model of sums modulo p, and its core on the sums it was not shown.

  Attributes:
    model: the model.
    sums: what it was and was not trained on.
    p: the modulus.
    found: the core of the last block's output, at the position of b.
  """

  def __init__(self, model: LoadedModel, p: int):
    """Extracts the core."""
    self.model, self.p, self.sums = model, p, additions(p)
    self.layer = model.config.n_layers - 1
    inputs = self.sums.test[:, :2]
    self.found: Extracted = extract(
      model, inputs, each(p), jacobians=min(JACOBIANS, len(inputs)),
      examples=512,
    )[-1]  # fmt: skip

  def accuracy(self, edits: Edits = Edits(), rows: Any = None) -> float:
    """How often the likeliest token is the sum, under an edit.

    Args:
      edits: of the model.
      rows: sums; None means those that it was not shown.
    """
    rows = self.sums.test if rows is None else rows
    logits = outputs_under(
      self.model, rows[:, :2], each(self.p), edits, examples=2048
    )
    return float((logits.argmax(-1) == rows[:, 2]).mean())

  def operator(self, rank: int) -> Cyclic:
    """The map of the core of some rank from a sum c to c + 1."""
    test = self.sums.test
    H = activations(self.model, test[:, :2], self.layer, examples=2048)
    Z = H @ self.found.core.span(rank)
    means = residue_means(Z, test[:, 2], self.p)
    return cyclic_operator(means, round(HELD_OUT * self.p))


def core_row(moment: Moment, model: LoadedModel, p: int) -> dict[str, Any]:
  """One row: a model's accuracies, the ranks of its core, and its map."""
  subject = Subject(model, p)
  config, layer, core = model.config, subject.layer, subject.found.core
  base = subject.accuracy()
  energy = core.rank(SHARE)

  def first(kind, start, fits):
    return first_rank(
      config, layer, core.basis, subject.accuracy, kind, start, fits
    )

  sufficient = first("keep", 1, lambda x: x >= base - SLACK)
  necessary = first("remove", energy, lambda x: x <= 2 / p)
  rank = max(energy, necessary or 0)
  found = subject.operator(rank)
  return {
    "branch": moment.branch,
    "epoch": moment.epoch,
    "model": model.name.partition("@")[0],
    "train accuracy": subject.accuracy(rows=subject.sums.train),
    "test accuracy": base,
    "rank": rank,
    "energy rank": energy,
    "sufficient rank": sufficient,
    "necessary rank": necessary,
    "eigenvalues": len(found.eigenvalues),
    "near unit": int(found.near_unit.sum()),
    "distance": float(np.median(np.abs(np.abs(found.eigenvalues) - 1))),
    "modes": len(found.modes),
    "r2": found.r2,
    "r2 held out": found.r2_held_out,
    "spectrum": " ".join(f"{value:.4f}" for value in found.eigenvalues),
  }


def spectrum(row: dict[str, Any]) -> np.ndarray:
  """`[k]` complex: the eigenvalues of a row."""
  return np.array([complex(word) for word in row["spectrum"].split()])
