"""Does the command train, and say in one line what is wrong with it?"""

import json

import jax
import pytest
from training_runs import ROOT, SMALL, command, metrics, start

import headjax
from headjax import command_line, train
from headjax.training.loop import Outcome

VARIANT = "--config=configs/geometry.py:write-common-axis@tiny"


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
  """Runs in the checkout, with compiled programs in the test's folder."""
  monkeypatch.chdir(ROOT)
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))


def finish(capsys, *argv):
  with pytest.raises(SystemExit) as caught:
    command_line.run(train.main, list(argv))
  return caught.value.code, capsys.readouterr()


def test_flags_become_a_config_with_its_changes():
  parsed = train.parse(
    ["--workdir=W", "--config.seed=43", VARIANT, "--config.train.steps", "7",
     "--config.train.checkpoint_steps=(0,7)", "--noconfig.model.tied",
     "--config.model.write.scale=0.5"]
  )  # fmt: skip
  assert parsed.config.name == "write-common-axis@tiny"
  assert (parsed.config.seed, parsed.config.train.steps) == (43, 7)
  assert parsed.config.train.checkpoint_steps == (0, 7)
  assert parsed.config.model.tied is False
  assert parsed.config.model.write.scale == 0.5
  assert (parsed.workdir, parsed.multihost) == ("W", False)
  assert parsed.coordinator is parsed.processes is parsed.process is None


@pytest.mark.parametrize(
  ("argv", "parts"),
  [
    ([], ["--config: got none", "configs/geometry.py:VARIANT"]),
    ([VARIANT], ["--workdir: got none"]),
    ([VARIANT, "--workdir="], ["--workdir: got none"]),
    (["--workdir=W"], ["--config: got none"]),
    (
      [VARIANT, "--workdir=W", "--config.sed=3"],
      ["--config.sed: got no such field", "one of", "seed", "model.write.kind"],
    ),
    (
      [VARIANT, "--workdir=W", "--config.model.n_layer=3"],
      ["--config.model.n_layer: got no such field", "model.n_layers"],
    ),
    ([VARIANT, "--workdir=W", "--config.model=3"], ["--config.model: got no"]),
    ([VARIANT, "--workdir=W", "--config.a.b=3"], ["--config.a.b: got no"]),
    ([VARIANT, "--workdir=W", "--config.seed=x"], ["config.seed=x"]),
    ([VARIANT, "--workdir=W", "--config.seed=1.5"], ["config.seed=1.5"]),
    ([VARIANT, "--workdir=W", "--config.model.tied=3"], ["model.tied=3"]),
    ([VARIANT, "--workdir=W", "--config.seed"], ["Missing value", "seed"]),
    ([VARIANT, "--wordir=W"], ["wordir", "workdir"]),
    ([VARIANT, "--workdir=W", "extra"], ["extra", "flags only"]),
    ([VARIANT, "--workdir=W", "--processes=two"], ["processes=two"]),
    (
      ["--config=configs/geometry.py:leaned", "--workdir=W"],
      ["variant: got 'leaned'", "learned", "write-common-axis", "@tiny"],
    ),
    (
      ["--config=configs/geometry.py:learned@huge", "--workdir=W"],
      ["scale: got 'huge'", "tiny"],
    ),
    (["--config=configs/none.py", "--workdir=W"], ["configs/none.py"]),
    (["--config=configs", "--workdir=W"], ["--config: got configs"]),
    (["--config=configs/geometry.py:", "--workdir=W"], ["variant: got ''"]),
    (["--config=README.md", "--workdir=W"], ["--config: got", "README.md"]),
    (["--config=tests/one_line.py", "--workdir=W"], ["get_config"]),
    (["--config=configs/base.py:x", "--workdir=W"], ["get_config()", "1"]),
    (["--workdir=W", "--config"], ["--config: got none"]),
  ],
)  # fmt: skip
def test_a_wrong_command_is_one_line_and_status_2(capsys, argv, parts):
  status, (out, err) = finish(capsys, *argv)
  assert status == 2
  assert err.startswith("error: ")
  assert (out, err.count("\n")) == ("", 1)
  for part in parts:
    assert part in err


@pytest.mark.parametrize(
  ("changes", "parts"),
  [
    ({"mesh.data": 3}, ["mesh: got data 3", "8, the number of devices"]),
    ({"train.batch_size": 12, "train.evaluate_sequences": 12},
     ["train.batch_size: got 12", "a multiple of"]),
    ({"model.d_vocab": 100}, ["model.d_vocab: got 100"]),
    ({"data.corpus": "R", "data.folder": "nowhere"}, ["nowhere/R"]),
    ({"train.steps": 0}, ["train.steps: got 0"]),
    ({"train.checkpoint_steps": "(0,'a')"}, ["train.checkpoint_steps"]),
    ({"model.d_head": 15, "model.write.kind": "axis"}, ["write"]),
    ({"optimizer.warmup": 50}, ["optimizer.warmup: got 50"]),
  ],
)  # fmt: skip
def test_a_run_that_cannot_be_is_refused_before_it_begins(
  capsys, tmp_path, changes, parts
):
  status, (out, err) = finish(capsys, *command(tmp_path / "W", changes))
  assert (status, out, err.count("\n")) == (2, "", 1)
  for part in parts:
    assert part in err
  assert not (tmp_path / "W").exists()


def test_debug_adds_the_traceback(capsys):
  status, (_, err) = finish(capsys, VARIANT, "--debug")
  assert status == 2
  assert "Traceback" in err and err.endswith("give --workdir=FOLDER\n")


def test_help_says_how_with_status_0(capsys):
  status, (out, _) = finish(capsys, "--help")
  assert status == 0
  assert "--workdir=runs/tiny" in out


@pytest.mark.parametrize(
  "flags",
  [["--processes=2"], ["--coordinator=a:1", "--process=0"], ["--process=1"]],
)
def test_flags_for_processes_belong_together(capsys, flags):
  status, (_, err) = finish(capsys, VARIANT, "--workdir=W", *flags)
  assert status == 2
  assert "--coordinator, --processes, --process" in err


def test_processes_meet_as_the_flags_say(monkeypatch):
  calls = []
  monkeypatch.setattr(
    jax.distributed, "initialize", lambda *args: calls.append(args)
  )
  manual = ["--coordinator=a:1", "--processes=2", "--process=1"]
  for flags in ([], ["--multihost"], manual):
    train.connect(train.parse([VARIANT, "--workdir=W", *flags]))
  assert calls == [(), ("a:1", 2, 1)]


@pytest.mark.parametrize(
  ("signal", "status", "text"),
  [(0, 0, "complete at step 5: W"), (15, 143, "SIGTERM"), (2, 130, "SIGINT")],
)
def test_the_status_says_how_the_run_ended(
  monkeypatch, capsys, signal, status, text
):
  monkeypatch.setattr(train, "train", lambda *args: Outcome(5, signal))
  code, (out, err) = finish(capsys, *command("W"))
  assert code == status
  assert text in out + err
  assert ("saved at step 5" in err) == bool(signal)


def test_a_run_trains_a_model_that_loads(tmp_path):
  """The whole way, as a user goes it."""
  changes = {"train.steps": 40, "optimizer.peak": 0.01, "train.log_every": 8}
  folder = tmp_path / "W"
  process = start(command(folder, changes), tmp_path / "cache")
  out, err = process.communicate()
  assert (out, err) == (f"complete at step 40: {folder}\n", "")
  assert process.returncode == 0
  lines = [line for line in metrics(folder) if "loss" in line]
  assert lines[-1]["loss"] < lines[0]["loss"] - 1
  models = {n: headjax.load_model(f"{folder}@{n}") for n in (0, 5, 40)}
  assert len({model.digest for model in models.values()}) == 3
  newest = headjax.load_model(folder)
  assert newest.name == "W@40" and newest.digest == models[40].digest
  assert newest.config.d_mlp == SMALL["model.d_mlp"]
  ids = newest.tokenizer.encode("The farmers near")
  assert newest.tokenizer.decode(ids) == "The farmers near"
  [begun] = json.loads((folder / "run.json").read_text())["starts"]
  assert begun["command"][1:] == command(folder, changes)
