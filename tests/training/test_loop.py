"""Does a run end where an undisturbed one does, whatever happened to it?"""

import dataclasses
import json
import os
import shutil
import signal
import threading

import numpy as np
import pytest
from one_line import refusal
from training_runs import StandIn, metrics, settings

from headjax.data.toy import Toy
from headjax.models import checkpoints, runs, tokenizers
from headjax.training import loop, start
from headjax.training.loop import Outcome, train


@pytest.fixture
def run(tmp_path, monkeypatch):
  """Trains in a folder with a stand-in, and returns the outcome and it."""

  def run(name="run", changes=(), corpus=None, prepare=None, spoil=()):
    wanted = settings(changes)
    stand_in = StandIn(wanted, spoil)
    if prepare:
      prepare(stand_in)
    monkeypatch.setattr(start, "trainer", lambda settings: stand_in)
    return train(wanted, corpus or Toy(), tmp_path / name), stand_in

  run.folder = tmp_path / "run"
  return run


def saved(folder):
  return checkpoints.steps(folder / "checkpoints")


def digests(folder):
  """What every checkpoint holds, but for where it was saved."""
  place = folder / "checkpoints"
  return {n: checkpoints.read_meta(place, n).parts for n in saved(folder)}


def before_step(n, action):
  """Does something in place of, or before, the nth step of a process."""

  def prepare(stand_in):
    step = stand_in.step

    def changed(state, tokens):
      if stand_in.calls.count("step") == n - 1:
        action()
      return step(state, tokens)

    stand_in.step = changed

  return prepare


def stop(number=signal.SIGTERM):
  return lambda: os.kill(os.getpid(), number)


class Crash(Exception):
  pass


def crash():
  raise Crash


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
  folder = tmp_path_factory.mktemp("runs") / "undisturbed"
  with pytest.MonkeyPatch.context() as patched:
    patched.setattr(start, "trainer", StandIn)
    train(settings(), Toy(), folder)
  return folder


def assert_same(folder, undisturbed):
  assert digests(folder) == digests(undisturbed)
  assert metrics(folder) == metrics(undisturbed)


def test_a_run_leaves_what_its_schedule_says(run):
  outcome, _ = run()
  assert outcome == Outcome(12, 0)
  assert saved(run.folder) == [0, 5, 12]
  lines = metrics(run.folder)
  assert [x["step"] for x in lines if "loss" in x] == [1, 4, 8, 12]
  assert [x["step"] for x in lines if "validation_loss" in x] == [0, 6, 12]
  assert lines[1]["tokens"] == 1 * 8 * 16
  names = {path.name for path in run.folder.iterdir()}
  assert {runs.MANIFEST, runs.CONFIG, tokenizers.FILE, "run.lock"} <= names
  assert runs.is_run(run.folder)


def test_batches_are_consecutive_rows_of_the_corpus(run):
  seen = []

  def prepare(stand_in):
    step = stand_in.step
    stand_in.step = lambda state, tokens: (
      seen.append(np.asarray(tokens)) or step(state, tokens)
    )

  run(prepare=prepare)
  rows = np.concatenate(seen)
  np.testing.assert_array_equal(
    rows, Toy().sequences(42, np.arange(12 * 8), 17)
  )


def test_metrics_are_those_of_the_trainer(run):
  """Against the same steps taken by hand."""
  _, stand_in = run()
  state = stand_in.init(42)
  losses, validation = {}, {}
  for step in range(12):
    if step % 6 == 0:
      validation[step] = by_hand(stand_in, state)
    indices = step * 8 + np.arange(8)
    tokens = stand_in.place(Toy().sequences(42, indices, 17))
    state, found = stand_in.step(state, tokens)
    losses[step + 1] = {name: float(value) for name, value in found.items()}
  validation[12] = by_hand(stand_in, state)
  for line in metrics(run.folder):
    if "loss" in line:
      for name, value in losses[line["step"]].items():
        assert line[name] == value
    else:
      assert line["validation_loss"] == pytest.approx(
        validation[line["step"]], rel=1e-12
      )
  path = run.folder / "checkpoints"
  like = start.parts(stand_in.abstract_state())
  parts, _ = checkpoints.restore(path, 12, like)
  np.testing.assert_array_equal(parts["params"]["w"], state.params["w"])
  np.testing.assert_array_equal(parts["optimizer"]["m"], state.opt_state["m"])


def by_hand(stand_in, state):
  tokens = Toy().validation(np.arange(16), 17)
  halves = (stand_in.place(tokens[:8]), stand_in.place(tokens[8:]))
  return np.mean([float(stand_in.evaluate(state.params, h)) for h in halves])


@pytest.mark.parametrize(
  ("number", "n"),
  [
    (signal.SIGTERM, 2),
    (signal.SIGTERM, 5),  # where there is a checkpoint anyway
    (signal.SIGTERM, 6),  # where there is an evaluation
    (signal.SIGINT, 7),
    (signal.SIGINT, 12),
  ],
)
def test_a_stopped_run_has_saved_and_goes_on(run, undisturbed, number, n):
  outcome, _ = run(prepare=before_step(n, stop(number)))
  assert outcome == Outcome(n, number)
  assert saved(run.folder)[-1] == n
  outcome, stand_in = run()
  assert outcome == Outcome(12, 0)
  assert stand_in.calls.count("step") == 12 - n
  assert "init" not in stand_in.calls
  assert_same(run.folder, undisturbed)


@pytest.mark.parametrize("n", [1, 5, 6, 12])
def test_a_run_that_crashed_goes_on_from_its_newest(run, undisturbed, n):
  with pytest.raises(Crash):
    run(prepare=before_step(n, crash))
  _, stand_in = run()
  newest = 5 if n > 5 else 0
  assert stand_in.calls.count("step") == 12 - newest
  assert_same(run.folder, undisturbed)


def test_a_run_stopped_at_every_step_ends_the_same(run, undisturbed):
  outcomes = [run(prepare=before_step(2, stop()))[0] for _ in range(6)]
  assert [outcome.step for outcome in outcomes] == [2, 4, 6, 8, 10, 12]
  run()
  assert_same(run.folder, undisturbed)


def test_a_complete_run_is_left_as_it_is(run, undisturbed):
  run()
  outcome, stand_in = run()
  assert outcome == Outcome(12, 0)
  assert stand_in.calls == []
  assert_same(run.folder, undisturbed)


def test_between_chosen_steps_the_newest_is_kept(run, undisturbed):
  seen = []

  def prepare(stand_in):
    step = stand_in.step

    def changed(state, tokens):
      seen.append(saved(run.folder))
      return step(state, tokens)

    stand_in.step = changed

  run(changes={"train.checkpoint_minutes": 1e-9}, prepare=prepare)
  assert all(len(steps) <= 4 for steps in seen)
  assert seen[-1][:2] == [0, 5] and seen[-1][-1] >= 9
  assert saved(run.folder) == [0, 5, 12]
  assert digests(run.folder) == digests(undisturbed)


@pytest.mark.parametrize("name", ["loss", "grad_norm"])
def test_a_loss_that_is_not_finite_stops_the_run(run, name):
  with refusal(f"step 7: {name}: got nan", "that of 5 is the last one saved"):
    run(spoil={7: name}, changes={"train.checkpoint_minutes": 0.0})
  assert saved(run.folder) == [0, 5]
  assert max(line["step"] for line in metrics(run.folder)) <= 6


def test_nothing_is_saved_at_a_step_that_is_not_finite(run):
  with refusal("step 5: loss: got nan", "that of 0 is the last one saved"):
    run(spoil={5: "loss"})
  assert saved(run.folder) == [0]


def test_a_damaged_checkpoint_is_named_and_the_one_before_used(
  run, undisturbed, capfd
):
  run(prepare=before_step(9, stop()))
  assert saved(run.folder) == [0, 5, 9]
  path = run.folder / "checkpoints" / "9" / "params" / "manifest.ocdbt"
  path.write_bytes(path.read_bytes()[:-1])
  capfd.readouterr()
  _, stand_in = run()
  assert stand_in.calls.count("step") == 12 - 5
  named, goes_on = capfd.readouterr().err.splitlines()
  assert f"{run.folder}/checkpoints/9: got unreadable params" in named
  assert "(it is 9.damaged now)" in named
  assert goes_on == "going on from step 5"
  assert (run.folder / "checkpoints" / "9.damaged").is_dir()
  assert_same(run.folder, undisturbed)


def test_when_all_are_damaged_the_run_begins_again(run, undisturbed, capfd):
  run(prepare=before_step(9, stop()))
  for step in saved(run.folder):
    shutil.rmtree(run.folder / "checkpoints" / str(step) / "meta")
  _, stand_in = run()
  assert stand_in.calls.count("step") == 12
  assert capfd.readouterr().err.count("unreadable meta") == 3
  assert_same(run.folder, undisturbed)


def test_a_full_disk_stops_the_run_with_one_line(run, monkeypatch):
  usage = shutil.disk_usage("/")._replace(free=0)

  def fill():
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)

  with pytest.raises(OSError, match="checkpoints/5: not written") as error:
    run(prepare=before_step(3, fill))
  assert "\n" not in str(error.value)
  assert saved(run.folder) == [0]
  monkeypatch.undo()


def test_a_save_that_fails_in_the_background_stops_the_run(run, monkeypatch):
  def failed(writer):
    if writer._step == 0:
      raise OSError("checkpoint 0: not written (a reason)")

  monkeypatch.setattr(loop.Writer, "check", failed)
  with pytest.raises(OSError, match="a reason"):
    run()


def test_another_run_in_the_same_folder_is_refused(run):
  def second():
    with refusal("another run holds"):
      train(settings(), Toy(), run.folder)

  # In another thread, so that its signals are left alone.
  failures = []

  def guarded():
    try:
      second()
    except BaseException as error:
      failures.append(error)

  def action():
    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()

  run(prepare=before_step(3, action))
  assert failures == []


def test_a_changed_config_is_refused_before_anything_is_done(run):
  run(prepare=before_step(3, stop()))
  before = sorted(run.folder.rglob("*"))
  with refusal("config: got seed 42 -> 43"):
    run(changes={"seed": 43})
  assert sorted(run.folder.rglob("*")) == before


def test_what_is_told_and_kept_may_change_on_the_way(run, undisturbed):
  run(prepare=before_step(7, stop()))
  run(changes={"train.checkpoint_steps": (9,), "train.log_every": 1})
  assert saved(run.folder) == [0, 5, 9, 12]
  changed = json.loads((run.folder / runs.CONFIG).read_text())
  assert changed["train"]["log_every"] == 1
  assert digests(run.folder)[12] == digests(undisturbed)[12]


def test_a_foreign_folder_is_left_alone(run):
  run.folder.mkdir()
  (run.folder / "config.json").write_text("{}")
  with refusal("config.json of something else"):
    run()
  assert [path.name for path in run.folder.iterdir()] == ["config.json"]


class Short(Toy):
  """A corpus with fewer tokens than a run needs."""

  def check(self, length, n_sequences, validation_sequences):
    asked = (length, n_sequences, validation_sequences)
    raise ValueError(f"corpus: asked for {asked}")


class Wide(Toy):
  """A corpus with many ids."""

  d_vocab = 513


@pytest.mark.parametrize(
  ("corpus", "changes", "message"),
  [
    (Short(), {}, "asked for (17, 96, 16)"),
    (Short(), {"train.evaluate_every": 0}, "asked for (17, 96, 0)"),
    (Wide(), {}, "model.d_vocab: got 512; expected at least 513"),
    (Toy(), {"train.evaluate_sequences": 12}, "train.evaluate_sequences"),
  ],
)
def test_a_corpus_that_does_not_fit_is_refused(run, corpus, changes, message):
  with refusal(message):
    run(corpus=corpus, changes=changes)
  assert not run.folder.exists()


def test_it_runs_in_a_thread_too(run):
  found = []
  thread = threading.Thread(target=lambda: found.append(run()[0]))
  thread.start()
  thread.join()
  assert found == [Outcome(12, 0)]


def test_devices_get_the_next_step_before_a_loss_is_read(run, monkeypatch):
  """A loss is read when two further steps have been given away."""
  order = []

  def prepare(stand_in):
    step = stand_in.step

    def changed(state, tokens):
      order.append("step")
      return step(state, tokens)

    stand_in.step = changed

  get = loop.jax.device_get
  monkeypatch.setattr(
    loop.jax, "device_get", lambda x: order.append("read") or get(x)
  )
  run(
    prepare=prepare,
    changes={"train.evaluate_every": 0, "train.checkpoint_steps": ()},
  )
  assert order[:6] == ["step"] * 3 + ["read", "step", "read"]


def test_the_settings_are_not_changed_by_a_run(run):
  before = settings()
  run()
  assert dataclasses.asdict(before) == dataclasses.asdict(settings())
