"""How are the small models of an experiment trained, and then measured?

An `Ensemble` trains all of them at once; each is then a model like any other,
in memory, that extraction and edits take.
"""

import dataclasses
import hashlib
import json
from typing import Any

import numpy as np

from headjax.checks import check
from headjax.models.checksums import checksums
from headjax.models.config import ModelConfig
from headjax.models.load import LoadedModel
from headjax.training.ensembles import Ensemble
from headjax.training.recipe import Optimizer
from headjax.training.step import TrainState


@dataclasses.dataclass(frozen=True)
class Setup:
  """An experiment's models and their training.

  Attributes:
    name: of the experiment, for labels.
    model: of every member.
    optimizer: of every member; its steps do not matter at a constant rate.
    seeds: one a member.
    batch_size: sequences in a step, at most; whole batches only.
    epochs: passes over the data.
    decaying: which parameters decay, "matrices" or "all".
    dropout: of what is added to the stream, in training.
  """

  name: str
  model: ModelConfig
  optimizer: Optimizer
  seeds: tuple[int, ...]
  batch_size: int
  epochs: int
  decaying: str = "matrices"
  dropout: float = 0.0

  def __post_init__(self):
    for field in ("batch_size", "epochs"):
      got = getattr(self, field)
      check(got >= 1, field, got, "at least 1", "raise it")
    check(
      self.optimizer.final == self.optimizer.peak,
      "optimizer.final",
      self.optimizer.final,
      f"optimizer.peak = {self.optimizer.peak}: a constant rate",
      "set both",
    )

  def ensemble(
    self, *, first: int = 0, weight_decay: np.ndarray | None = None
  ) -> Ensemble:
    """All members, untrained."""
    return Ensemble(
      self.model,
      self.optimizer,
      np.array(self.seeds),
      weight_decay=weight_decay,
      first=first,
      decaying=self.decaying,
      dropout_rate=self.dropout,
    )


def epoch_rows(
  seeds: tuple[int, ...], epochs: range, n: int, batch_size: int
) -> np.ndarray:
  """`[member, step, batch]`: every member's own order of the data.

  Args:
    seeds: one a member.
    epochs: which.
    n: rows of the data.
    batch_size: of a step; the whole data where that is less.

  Returns:
    Rows of the batches; what does not fill a batch is left out of that epoch.
  """
  size = min(batch_size, n)
  steps = n // size

  def one(seed, epoch):
    order = np.random.default_rng([seed, epoch]).permutation(n)
    return order[: steps * size].reshape(steps, size)

  return np.stack(
    [np.concatenate([one(seed, e) for e in epochs]) for seed in seeds]
  )


def as_models(
  ensemble: Ensemble, state: TrainState, name: str
) -> list[LoadedModel]:
  """Every member as a model without a tokenizer."""
  found = []
  for i, seed in enumerate(ensemble.seeds.tolist()):
    params = ensemble.params(state, i)
    sums = json.dumps(checksums(params), sort_keys=True)
    digest = hashlib.sha256(sums.encode()).hexdigest()
    label = f"{name}-{seed}@{int(state.step[i])}"
    found.append(LoadedModel(ensemble.config, params, None, label, digest))
  return found


def setup(config: Any, **model: Any) -> Setup:
  """The experiment that a config of `configs/cores.py` describes.

  Args:
    config: with the sections `model`, `optimizer` and `train`.
    **model: fields of the model in place of the config's.
  """
  epochs = config.train.epochs
  return Setup(
    config.name,
    ModelConfig(**(dict(config.model) | model)),
    # The rate is constant, so the length of its schedule means nothing.
    Optimizer(steps=max(2, epochs), **dict(config.optimizer)),
    tuple(config.seeds),
    config.train.batch_size,
    epochs,
    config.train.decaying,
    config.train.dropout,
  )
