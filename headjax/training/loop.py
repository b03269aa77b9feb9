"""How does a run go from its first step, or its newest checkpoint, to its last?

Nothing here decides a number: the state after N steps depends on N and the
config alone, so a run that was stopped ends where an undisturbed one does.
"""

import collections
import dataclasses
import math
import time
from collections.abc import Mapping

import jax
import numpy as np
from etils import epath
from jax.experimental import multihost_utils

from headjax.checks import fail
from headjax.data.token_files import Corpus
from headjax.data.toy import Toy
from headjax.files import absolute
from headjax.models import runs
from headjax.models.checkpoint_writer import Writer
from headjax.training import start, workdir
from headjax.training.batches import Batches
from headjax.training.from_config import Settings
from headjax.training.lock import Lock
from headjax.training.meter import Meter
from headjax.training.recorder import Recorder, Silence
from headjax.training.signals import Signals
from headjax.training.step import Trainer, TrainState

_METRICS = ("loss", "grad_norm", "learning_rate")
_AHEAD = 2  # steps given to the devices whose losses are not read yet


@dataclasses.dataclass(frozen=True)
class Outcome:
  """How a run ended.

  Attributes:
    step: updates made, all of them saved.
    signal: the signal that stopped it, or 0.
  """

  step: int
  signal: int


def train(
  settings: Settings, corpus: Corpus | Toy, folder: epath.PathLike
) -> Outcome:
  """Trains, from where the folder's newest sound checkpoint is.

  Args:
    settings: of the run.
    corpus: what it reads.
    folder: of the run, on a disk or in a store that all processes share.

  Raises:
    ValueError: the settings, the corpus, the devices and the folder do not
      belong together, another run holds the folder, or a loss is not finite.
    OSError: a file cannot be written.
  """
  folder = absolute(folder)
  trainer = start.trainer(settings)
  start.check_corpus(settings, corpus)
  workdir.check_same(folder, settings.record, corpus)  # before it is touched
  with Signals() as signals, start.held(folder) as lock:
    state, resumed = start.state(folder, trainer, settings, corpus)
    run = _Run(settings, corpus, trainer, signals, lock)
    if jax.process_index() == 0:
      recorder = Recorder(folder, resumed, settings.schedule.steps)
    else:
      recorder = Silence()
    with Writer(folder / runs.CHECKPOINTS) as writer, recorder:
      return run.go(state, resumed, writer, recorder)


class _Run:
  """A run on its way."""

  def __init__(
    self,
    settings: Settings,
    corpus: Corpus | Toy,
    trainer: Trainer,
    signals: Signals,
    lock: Lock,
  ):
    self.settings, self.schedule = settings, settings.schedule
    self.corpus, self.trainer = corpus, trainer
    self.signals, self.lock = signals, lock
    self.rows = trainer.local_rows()
    self.pending: collections.deque = collections.deque()

  def go(
    self,
    state: TrainState,
    resumed: int | None,
    writer: Writer,
    recorder: Recorder | Silence,
  ) -> Outcome:
    """Takes the steps that are left."""
    self.state, self.step = state, resumed or 0
    self.saved, self.saved_s = resumed, time.monotonic()
    self.writer, self.recorder = writer, recorder
    steps, stopped = self.schedule.steps, 0
    if self.step == steps:
      return Outcome(steps, 0)
    batch_size = self.settings.arithmetic.batch_size
    self.meter = Meter(self.settings.model, batch_size)
    with Batches(self._batch, self.step, steps) as self.batches:
      self._warm_up()
      if resumed is None:
        self._evaluate_and_keep()
      while self.step < steps and not stopped:
        self._take_step()
        self._evaluate_and_keep()
        stopped = self._settle()
    self._save()
    return Outcome(self.step, stopped)

  def _take_step(self) -> None:
    tokens = self.batches.get()
    self.state, metrics = self.trainer.step(self.state, tokens)
    self.signals.nothing_to_lose = False
    self.step += 1
    self.pending.append((self.step, metrics))
    self._read_losses(_AHEAD)

  def _read_losses(self, left: int) -> None:
    """Reads all losses but the last few; none that is not finite passes."""
    while len(self.pending) > left:
      step, metrics = self.pending.popleft()
      values = {k: float(v) for k, v in jax.device_get(metrics).items()}
      for name in ("loss", "grad_norm"):
        if not math.isfinite(values[name]):
          self._refuse(step, name, values[name])
      self.recorder.advance(step)
      if self.schedule.logs(step):
        self._write(step, values)

  def _write(self, step: int, values: Mapping[str, float]) -> None:
    """Adds a line of metrics, what matters most first."""
    model, arithmetic = self.settings.model, self.settings.arithmetic
    ordered = {name: values[name] for name in _METRICS}
    ordered["tokens"] = step * arithmetic.batch_size * model.n_ctx
    rates = self.meter.rates(step, self.batches.waited_s)
    self.recorder.write(step, **ordered, **rates)

  def _refuse(self, step: int, name: str, value: float):
    last = "no checkpoint" if self.saved is None else f"that of {self.saved}"
    fail(
      f"step {step}: {name}",
      value,
      "a finite number",
      f"lower optimizer.peak or warm up longer; {last} is the last one saved",
    )

  def _evaluate_and_keep(self) -> None:
    """What the schedule wants after this step."""
    if self.schedule.evaluates(self.step):
      self._read_losses(0)
      with self.meter.pause():
        self.recorder.write(self.step, validation_loss=self._validation_loss())
    if self.schedule.keeps(self.step):
      self._save()

  def _validation_loss(self) -> float:
    """Mean loss over the first sequences of the validation text, in nats."""
    batch_size = self.settings.arithmetic.batch_size
    firsts = range(0, self.schedule.evaluate_sequences, batch_size)
    losses = [self._loss_from(first) for first in firsts]
    return float(np.mean(jax.device_get(losses), dtype=np.float64))

  def _loss_from(self, first: int) -> jax.Array:
    length = self.settings.model.n_ctx + 1
    tokens = self.corpus.validation(first + self.rows, length)
    return self.trainer.evaluate(self.state.params, self.trainer.place(tokens))

  def _settle(self) -> int:
    """Saves if it is time to; the signal on which all processes stop."""
    self.writer.check()
    minutes = self.schedule.checkpoint_minutes
    due = bool(minutes) and time.monotonic() - self.saved_s > 60 * minutes
    votes = np.array([self.signals.received, due])
    if jax.process_count() > 1:
      if self.step % self.schedule.log_every:
        return 0
      votes = multihost_utils.process_allgather(votes).max(0)
    stopped, due = map(int, votes)
    if due and not stopped:
      self._save()
    return stopped

  def _save(self) -> None:
    """Saves the state, unless it is; of one that is replaced, the newest."""
    if self.saved == self.step:
      return
    self._read_losses(0)
    self.lock.check()
    with self.meter.pause():
      self.recorder.flush()
      self.writer.save(
        self.step,
        start.parts(self.state),
        kept=self.schedule.keeps(self.step),
      )
    self.saved, self.saved_s = self.step, time.monotonic()

  def _batch(self, step: int) -> jax.Array:
    """The batch of a step: rows step * batch_size and on of the corpus."""
    first = step * self.settings.arithmetic.batch_size
    seed, length = self.settings.seed, self.settings.model.n_ctx + 1
    rows = self.corpus.sequences(seed, first + self.rows, length)
    return self.trainer.place(rows)

  def _warm_up(self) -> None:
    """Compiles the evaluation while there is nothing to lose."""
    if self.schedule.evaluate_every:
      self._loss_from(0)
