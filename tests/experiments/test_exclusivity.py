"""Does one command measure many runs, go on, and tell everything again?"""

import csv
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import random_weights

from configs import base, geometry
from experiments import exclusivity
from headjax import command_line
from headjax.data.toy import Toy
from headjax.models import tokenizers, weights
from headjax.models.checkpoint_writer import Writer
from headjax.models.from_config import model_config
from headjax.studies.exclusivity import study, subjects

FEW = ("--draws", "100")
SMALL = {
  "model.n_layers": 3,
  "model.n_heads": 4,
  "model.d_model": 32,
  "model.d_head": 8,
  "model.d_mlp": 16,
  "model.n_ctx": 16,
}


def write_run(folder, design, seed, steps=(0, 4)):
  """A run folder with random parameters, another set at every step."""
  config = geometry.get_config(f"{design}@tiny")
  base.override(config, SMALL | {"seed": seed})
  folder.mkdir(parents=True)
  (folder / "run.json").write_text('{"headjax_run": 1}')
  (folder / "config.json").write_text(json.dumps(config.to_dict()))
  lines = [{"step": s, "validation_loss": 2.0 + s + seed} for s in steps]
  text = "".join(json.dumps(line) + "\n" for line in lines)
  (folder / "metrics.jsonl").write_text(text)
  tokenizers.write(Toy().tokenizer, folder)
  shape = model_config(config.model)
  with Writer(folder / "checkpoints") as writer:
    for step in steps:
      raw = random_weights(shape, seed + step)
      tree = weights.pack(shape, raw, "random")
      params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), tree)
      writer.save(step, {"params": params})
  return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
  folder = tmp_path_factory.mktemp("runs")
  for seed in (0, 1):
    write_run(folder / f"learned-tiny-seed{seed}", "learned", 10 * seed)
  return folder


@pytest.fixture
def call(tmp_path, monkeypatch):
  """Runs the script; returns its exit status."""
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)

  def run(*argv):
    given = [*map(str, argv), "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as ended:
      command_line.run(exclusivity.main, given)
    return ended.value.code

  return run


def tables(out: pathlib.Path) -> dict[str, bytes]:
  return {p.name: p.read_bytes() for p in (out / "tables").iterdir()}


def rows(out: pathlib.Path, name: str) -> list[dict[str, str]]:
  with open(out / "tables" / f"{name}.csv", newline="") as file:
    return list(csv.DictReader(file))


@pytest.mark.slow
def test_runs_are_measured_once_and_told_again(call, runs, tmp_path, capsys):
  pattern = runs / "learned-*"
  some = ("--tasks", "sva", "--parts", "heads", "--examples", "8", *FEW)
  assert call("--runs", pattern, *some) == 0
  out = tmp_path / "out"
  printed = capsys.readouterr().out
  assert "learned-tiny-seed0: 3 measured" in printed
  assert (out / "learned-tiny-seed1" / "heads-evaluation-sva.nc").is_file()
  assert (out / "figures" / "heat-maps.png").is_file()
  first = tables(out)
  found = rows(out, "concentration")
  assert [row["seed"] for row in found] == ["0", "10"]
  loss = [float(row["validation_loss"]) for row in rows(out, "performance")]
  assert loss == [6.0, 16.0]
  mean = np.mean([float(row["neff"]) for row in found])
  [over] = [
    row
    for row in rows(out, "seeds")
    if (row["table"], row["quantity"]) == ("concentration", "neff")
  ]
  assert float(over["estimate"]) == pytest.approx(mean, rel=1e-5)
  assert over["n_seeds"] == "2"
  assert any(row["holds"] for row in rows(out, "claims"))
  assert call("--tables", *FEW) == 0
  assert tables(out) == first
  capsys.readouterr()
  assert call("--runs", pattern, *some) == 0
  assert "learned-tiny-seed1: 3 was there" in capsys.readouterr().out


@pytest.mark.slow
def test_refusals_are_listed(call, runs, tmp_path, monkeypatch, capsys):
  def refuse(*args, **options):
    raise ValueError("norm_at: got 'both'")

  monkeypatch.setattr(study.self_repair, "measure", refuse)
  run = runs / "learned-tiny-seed0"
  parts = ("--tasks", "sva", "--parts", "self-repair", "--examples", "8")
  assert call("--runs", run, *parts, *FEW) == 0
  assert "1 results were refused" in capsys.readouterr().out
  [row] = rows(tmp_path / "out", "refusals")
  assert row["part"] == "self-repair" and row["why"] == "norm_at: got 'both'"


@pytest.mark.slow
@pytest.mark.parametrize("design", ["half-shared", "all-common-axis"])
def test_every_part_is_measured_or_says_why_not(call, tmp_path, capsys, design):
  run = write_run(tmp_path / "mine", design, 3)
  tasks = ("sva", "quote", "plural")
  assert call("--runs", run, "--examples", "8", *FEW) == 0
  printed = capsys.readouterr().out
  assert "refused" not in printed
  for part in study.PARTS:
    for task in (part.only or tasks) if part.splits else ("",):
      name = f"{part.name}-{task}".rstrip("-")
      there = (tmp_path / "out" / "mine" / f"{name}.nc").is_file()
      assert there or f"mine: {part.name}" in printed, name


def test_what_cannot_be_done_is_one_line(call, runs, capsys):
  for argv, words in (
    ((), ("options", "0 runs")),
    (("--runs", runs / "x*"), ("--runs", "some run folders match")),
    (("--tables",), ("--out", "no results")),
    (("--runs", "x", "--parts", "hats"), ("--parts", "'hats'")),
    (("--runs", "x", "--tables"), ("options", "1 runs and --tables")),
    (("--runs", "x", "--draws", "1"), ("--draws", "at least 2")),
    (("--runs", "x", "--tasks", "ioi"), ("--tasks", "ioi")),
    (("--runs", "nowhere"), ("model", "'nowhere'")),
    (
      ("--runs", runs / "learned-tiny-seed0", runs / "learned-tiny-seed0"),
      ("learned-tiny-seed0 twice",),
    ),
  ):
    assert call(*argv) == 2, argv
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    assert all(word in lines[0] for word in words), lines


def test_a_run_in_another_folder_with_steps_has_its_own_name(runs):
  run = runs / "learned-tiny-seed1"
  whole, part = subjects.find([str(run), f"{run}@0"])
  assert (whole.name, part.name) == (run.name, f"{run.name}@0")
  assert (whole.folder, part.folder) == (str(run), "")
  assert (whole.design, whole.seed) == ("learned@tiny", 10)
  assert (whole.validation_loss, part.validation_loss) == (16.0, 12.0)
  [other] = subjects.find(["smollm2-135m"])
  assert (other.name, other.seed, other.corpus) == ("smollm2-135m", -1, "")
  assert subjects.why_no_text(other) and not subjects.why_no_text(whole)
  text = subjects.validation_text(whole, 3, 16)
  np.testing.assert_array_equal(text, Toy().validation(np.arange(3), 16))
