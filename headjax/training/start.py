"""What has to be right before a run takes a step? All that can be checked."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from etils import epath
from jax.experimental import multihost_utils

from headjax.checks import check, fail
from headjax.data.token_files import Corpus
from headjax.data.toy import Toy
from headjax.models import checkpoints, runs
from headjax.models.checkpoint_writer import set_aside
from headjax.training import workdir
from headjax.training.from_config import Settings, check_vocabulary
from headjax.training.lock import Lock
from headjax.training.sharding import make_mesh
from headjax.training.step import Trainer, TrainState

_OPTIMIZER = "optimizer"  # the part of a checkpoint beside runs.PARAMS


def trainer(settings: Settings) -> Trainer:
  """The compiled programs' owner, on a mesh that divides the batch."""
  mesh = make_mesh(settings.mesh)
  return Trainer(settings.model, settings.optimizer, settings.arithmetic, mesh)


def check_corpus(settings: Settings, corpus: Corpus | Toy) -> None:
  """Refuses a corpus that the run cannot be read from.

  Raises:
    ValueError: it has too few tokens or too many ids, or the validation
      sequences fill no whole batches.
  """
  schedule = settings.schedule
  batch_size = settings.arithmetic.batch_size
  validation = schedule.evaluate_sequences if schedule.evaluate_every else 0
  check(
    validation % batch_size == 0,
    "train.evaluate_sequences",
    validation,
    f"a multiple of train.batch_size = {batch_size}",
    "change one of them",
  )
  check_vocabulary(corpus, settings.model.d_vocab)
  length = settings.model.n_ctx + 1
  corpus.check(length, schedule.steps * batch_size, validation)


@contextlib.contextmanager
def held(folder: epath.Path) -> Iterator[Lock]:
  """Holds the folder for all processes; the first one takes the lock."""
  lock = Lock(folder)
  with contextlib.ExitStack() as stack:
    problem = None
    if jax.process_index() == 0:
      try:
        stack.enter_context(lock)
      except (OSError, ValueError) as error:
        problem = error
    failed = _anywhere(problem is not None)
    if problem is not None:
      raise problem
    if failed:
      fail(
        f"workdir {folder}",
        "a folder that process 0 could not take",
        "a folder of one run",
        "see the message of process 0",
      )
    yield lock


def state(
  folder: epath.Path,
  trainer: Trainer,
  settings: Settings,
  corpus: Corpus | Toy,
) -> tuple[TrainState, int | None]:
  """The state that a run goes on from, and the step of its checkpoint.

  Writes down the start. A damaged checkpoint is named on standard error and
  set aside, and the one before is used; without any, the step is None and the
  state the first one.

  Raises:
    ValueError: the folder belongs to another run.
  """
  workdir.check_same(folder, settings.record, corpus)
  found, resumed = _newest(folder / runs.CHECKPOINTS, trainer)
  if jax.process_index() == 0:
    workdir.write(
      folder,
      settings.record,
      corpus,
      mesh=trainer.mesh.shape,
      step=resumed or 0,
    )
    if resumed is not None:
      print(f"going on from step {resumed}", file=sys.stderr)
  return (trainer.init(settings.seed), None) if found is None else (
    found, resumed
  )  # fmt: skip


def parts(state: TrainState) -> dict[str, Any]:
  """What a checkpoint holds; its number is the step."""
  return {runs.PARAMS: state.params, _OPTIMIZER: state.opt_state}


def _newest(
  folder: epath.Path, trainer: Trainer
) -> tuple[TrainState | None, int | None]:
  """The state of the newest sound checkpoint, and its step."""
  like = trainer.abstract_state()
  for step in reversed(checkpoints.steps(folder)):
    try:
      found, _ = checkpoints.restore(folder, step, parts(like))
    except checkpoints.DamagedCheckpointError as error:
      if jax.process_index() == 0:
        aside = set_aside(folder, step)
        print(f"{error} (it is {aside.name} now)", file=sys.stderr)
      continue
    number = jax.make_array_from_callback(
      (), like.step.sharding, lambda _, step=step: np.asarray(step, np.int32)
    )
    return TrainState(number, found[runs.PARAMS], found[_OPTIMIZER]), step
  return None, None


def _anywhere(condition: bool) -> bool:
  """Whether it holds in any process."""
  if jax.process_count() == 1:
    return condition
  return bool(multihost_utils.process_allgather(np.array(condition)).any())
