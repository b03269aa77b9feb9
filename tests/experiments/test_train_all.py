"""Does the script train what is left, and nothing else, whatever happens?"""

import contextlib
import importlib.util
import json
import pathlib
import shutil
import sys

import pytest
from etils import epath

from headjax import command_line
from headjax.models import runs

ROOT = pathlib.Path(__file__).parents[2]
PATH = ROOT / "experiments" / "train_all.py"
SPEC = importlib.util.spec_from_file_location("train_all_script", PATH)
SCRIPT = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(SCRIPT)
NAMES = [
  f"{row}-tiny-seed{seed}"
  for row in ("learned", "all-common-axis")
  for seed in (3, 4)
]
# In place of a training: does what `orders.json` says of its folder.
TRAINER = """
import json, os, pathlib, signal, sys, time
here = pathlib.Path(__file__).parent
folder = pathlib.Path(next(
  a for a in sys.argv if a.startswith("--workdir=")).partition("=")[2])
with open(here / "calls", "a") as file:
  file.write(json.dumps([folder.name, *sys.argv[1:]]) + "\\n")
orders = json.loads((here / "orders.json").read_text())
order = orders.get(folder.name, "finish")
folder.mkdir(parents=True, exist_ok=True)
records = json.loads((here / "records.json").read_text())
(folder / "config.json").write_text(json.dumps(records[folder.name]))
(folder / "run.json").write_text('{"headjax_run": 1}')

def reach(step):
  (folder / "checkpoints" / str(step)).mkdir(parents=True, exist_ok=True)

def stop(number, frame):
  with open(here / "signals", "a") as file:
    file.write(f"{number}\\n")
  reach(2)
  sys.exit(128 + number)

if order == "fail":
  sys.exit(2)
if order.startswith("signal"):
  signal.signal(int(order[6:]), stop)
  os.kill(os.getppid(), int(order[6:]))
  time.sleep(60)
reach(5)
with open(folder / "metrics.jsonl", "a") as file:
  for line in ({"step": 4, "tokens_per_s": 700.4, "loss": 3},
               {"step": 5, "validation_loss": 2.5}):
    file.write(json.dumps(line) + "\\n")
  file.write('{"step": 5, "validation_l')
"""


@pytest.fixture
def call(tmp_path, monkeypatch):
  """Runs the script with the trainer above; returns its exit status."""
  monkeypatch.chdir(ROOT)
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
  (tmp_path / "trainer.py").write_text(TRAINER)
  trainer = (sys.executable, "-S", str(tmp_path / "trainer.py"))
  monkeypatch.setattr(SCRIPT, "TRAIN", trainer)

  def run(orders=(), others=("--config.train.steps=5",), **options):
    given = {
      "config": "configs/geometry.py",
      "variants": "learned@tiny,all-common-axis@tiny",
      "seeds": "3,4",
      "out": tmp_path / "out",
    } | options
    argv = [f"--{name}={value}" for name, value in given.items()]
    argv += ["--", *others, "--config.optimizer.warmup=1"]
    (tmp_path / "orders.json").write_text(json.dumps(dict(orders)))
    with contextlib.suppress(ValueError):  # which the script is to show
      found = SCRIPT.planned(*SCRIPT.parse(argv))
      records = {one.name: one.settings.record for one in found}
      (tmp_path / "records.json").write_text(json.dumps(records))
    with pytest.raises(SystemExit) as ended:
      command_line.run(SCRIPT.main, argv)
    return ended.value.code

  return run


def called(tmp_path):
  """The folders of the trainings begun, in order; forgets them."""
  path = tmp_path / "calls"
  lines = path.read_text().splitlines() if path.exists() else []
  path.unlink(missing_ok=True)
  return [json.loads(line)[0] for line in lines]


def table(capsys):
  """The printed lines that are of runs: name -> the other columns."""
  rows = [
    line.split(maxsplit=4) for line in capsys.readouterr().out.split("\n")
  ]
  return {row[0]: row[1:] for row in rows if row and row[0] in NAMES}


def test_every_variant_is_trained_with_every_seed(call, tmp_path, capsys):
  assert call() == 0
  lines = (tmp_path / "calls").read_text().splitlines()
  assert [json.loads(line)[0] for line in lines] == NAMES
  flags = json.loads(lines[1])[1:]
  for flag in (
    "--config=configs/geometry.py:learned@tiny",
    "--config.seed=4",
    f"--workdir={tmp_path}/out/learned-tiny-seed4",
    "--config.train.steps=5",
  ):
    assert flag in flags
  assert table(capsys) == dict.fromkeys(
    NAMES, ["5/5", "2.5000", "700", "complete"]
  )


def test_one_that_fails_does_not_lose_the_others(call, tmp_path, capsys):
  assert call({NAMES[1]: "fail"}) == 1
  assert called(tmp_path) == NAMES
  rows = table(capsys)
  assert rows.pop(NAMES[1]) == ["0/5", "-", "-", "failed with status 2"]
  assert {row[-1] for row in rows.values()} == {"complete"}
  # Again: what is complete is skipped.
  assert call() == 0
  assert called(tmp_path) == [NAMES[1]]
  rows = table(capsys)
  assert rows.pop(NAMES[1])[-1] == "complete"
  assert {row[-1] for row in rows.values()} == {"was complete"}


@pytest.mark.parametrize("number", [15, 2])
def test_a_signal_is_passed_on_once_and_ends_it(number, call, tmp_path, capsys):
  assert call({NAMES[1]: f"signal{number}"}) == 128 + number
  assert (tmp_path / "signals").read_text() == f"{number}\n"
  assert called(tmp_path) == NAMES[:2]
  rows = table(capsys)
  assert [rows[name][-1] for name in NAMES] == [
    "complete", "stopped", "not begun", "not begun",
  ]  # fmt: skip
  assert rows[NAMES[1]][0] == "2/5"
  assert call() == 0  # resumes it
  assert called(tmp_path) == NAMES[1:]


def test_another_config_is_not_taken_for_complete(call, tmp_path):
  assert call(variants="learned@tiny", seeds="3") == 0
  assert called(tmp_path) == NAMES[:1]
  others = ("--config.train.steps=5", "--config.optimizer.peak=0.5")
  assert call(variants="learned@tiny", seeds="3", others=others) == 0
  assert called(tmp_path) == NAMES[:1]
  # Fields that change no number are free.
  others += ("--config.train.log_every=2",)
  assert call(variants="learned@tiny", seeds="3", others=others) == 0
  assert called(tmp_path) == []


@pytest.mark.parametrize(
  ("options", "parts"),
  [
    ({"variants": "learned@tiny,lerned"}, ["variant: got 'lerned'"]),
    ({"seeds": "3,x"}, ["seed", "'x'"]),
    ({"seeds": "3,3"}, ["--seeds: got 3,3", "different"]),
    ({"variants": "learned@tiny,"}, ["--variants"]),
    ({"others": ["--config.train.stepz=2"]}, ["config.train.stepz"]),
    ({"others": ["--config.train.dtype=half"]}, ["train.dtype: got 'half'"]),
    ({"others": ["--workdir=here"]}, ["after --: got --workdir=here"]),
    ({"config": "configs/none.py"}, ["--config: got configs/none.py"]),
  ],
)
def test_what_is_wrong_is_refused_before_anything_begins(
  options, parts, call, tmp_path, capsys
):
  assert call(**options) == 2
  [line] = capsys.readouterr().err.splitlines()
  for part in ["error: ", *parts]:
    assert part in line
  assert called(tmp_path) == []
  assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_real_trainings_are_resumed_and_complete(call, tmp_path, monkeypatch):
  monkeypatch.setattr(SCRIPT, "TRAIN", (sys.executable, "-m", "headjax.train"))
  monkeypatch.setenv("PYTHONPATH", str(ROOT))
  small = [
    "--config.model.n_layers=1", "--config.train.evaluate_every=2",
    "--config.train.evaluate_sequences=32", "--config.train.unroll=1",
    "--config.train.steps=5",
  ]  # fmt: skip
  options = {"variants": "learned@tiny", "seeds": "3", "others": small}
  assert call(**options) == 0
  folder = epath.Path(tmp_path / "out" / NAMES[0])
  before = runs.read(folder, "newest", "float32")
  shutil.rmtree(folder / "checkpoints" / "5")
  assert call(**options) == 0
  after = runs.read(folder, "newest", "float32")
  assert before[-2:] == after[-2:]
