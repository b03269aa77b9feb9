"""Is anything lost when a run is killed, at any moment, again and again?"""

import pathlib
import random
import signal
import subprocess
import time

import pytest
from training_runs import command, metrics, start

from headjax.models import checkpoints

# Checkpoints as fast as they can be written, so that moments fall into them.
CHANGES = {
  "train.steps": 500,
  "train.log_every": 100,
  "train.evaluate_every": 250,
  "train.checkpoint_minutes": 0.001,
}


class Run:
  """A folder in which one command is started again and again."""

  def __init__(self, folder: pathlib.Path, cache: pathlib.Path, changes=()):
    self.folder, self.cache = folder, cache
    self.command = command(folder, CHANGES | dict(changes))

  def start(self) -> subprocess.Popen:
    return start(self.command, self.cache)

  def finish(self) -> float:
    """Runs to the end; seconds that it took."""
    begun = time.monotonic()
    process = self.start()
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert out == f"complete at step 500: {self.folder}\n"
    return time.monotonic() - begun

  def unfinished(self) -> set[pathlib.Path]:
    """Checkpoints that are being written, or were when a run was killed."""
    return set((self.folder / "checkpoints").glob("*tmp*"))

  def reached(self) -> int:
    """The newest checkpoint's step, or -1."""
    return max(checkpoints.steps(self.folder / "checkpoints"), default=-1)

  def contents(self):
    """All that a run leaves, but for times."""
    place = self.folder / "checkpoints"
    parts = {
      step: checkpoints.read_meta(place, step).parts
      for step in checkpoints.steps(place)
    }
    assert not self.unfinished()
    return parts, metrics(self.folder)


def kill(run: Run, chance: random.Random, saving: bool) -> bool:
  """Kills a new start of the run, during a save or at any time after one.

  Returns:
    Whether it was a save that the kill left unfinished.
  """
  process, before = run.start(), run.unfinished()
  reached = run.reached()
  while process.poll() is None:
    if saving and run.unfinished() - before:
      time.sleep(0.03 * chance.random())
      break
    if not saving and run.reached() > reached:
      time.sleep(0.3 * chance.random())
      break
    time.sleep(0.0005)
  process.kill()
  process.communicate()
  assert process.returncode == -signal.SIGKILL, "it ended before it was killed"
  return bool(run.unfinished())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
  """What a run leaves that nothing disturbs, and a cache for others."""
  folder = tmp_path_factory.mktemp("undisturbed")
  run = Run(folder / "run", folder / "cache")
  run.finish()
  return run


@pytest.mark.slow
def test_a_run_killed_3_times_ends_as_if_it_had_not_been(undisturbed, tmp_path):
  run = Run(tmp_path / "run", undisturbed.cache)
  chance = random.Random(1)
  for saving in (True, False, True):
    kill(run, chance, saving)
  run.finish()
  assert run.contents() == undisturbed.contents()


@pytest.mark.slow
def test_a_run_killed_20_times_ends_as_if_it_had_not_been(
  undisturbed, tmp_path
):
  run = Run(tmp_path / "run", undisturbed.cache)
  chance = random.Random(2)
  unfinished = sum(kill(run, chance, i % 4 > 0) for i in range(20))
  assert unfinished >= 5, "too few of the kills came during a save"
  run.finish()
  assert run.contents() == undisturbed.contents()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_at_once_and_the_run_goes_on(
  undisturbed, tmp_path, number
):
  run = Run(tmp_path / "run", undisturbed.cache)
  process = run.start()
  while run.reached() < 1:
    time.sleep(0.01)
  sent = time.monotonic()
  process.send_signal(number)
  out, err = process.communicate()
  assert time.monotonic() - sent < 10
  assert process.returncode == 128 + number
  name = signal.Signals(number).name
  assert out == ""
  assert err == (
    f"stopped by {name} and saved at step {run.reached()}; the same command"
    " goes on\n"
  )
  run.finish()
  assert run.contents() == undisturbed.contents()
