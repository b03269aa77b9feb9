"""Does the script say by its status whether a released cell is reproduced?"""

import csv

import jax
import planted_writers
import pytest
import released_cell

from experiments import writers_cancellers
from headjax import command_line, results
from headjax.studies.writers.cell import judge


@pytest.fixture
def call(tmp_path, monkeypatch):
  """Runs the script on some files; returns its exit status."""
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))

  def run(*paths):
    argv = ["--check", *map(str, paths)] if paths else []
    with pytest.raises(SystemExit) as ended:
      command_line.run(writers_cancellers.main, argv)
    return ended.value.code

  return run


@pytest.fixture
def content():
  return released_cell.rounded(released_cell.cell(layers=2, heads=6, pairs=30))


def test_a_consistent_cell_ends_well(call, content, tmp_path, capsys):
  assert call(released_cell.write(tmp_path / "cell.json", content)) == 0
  printed = capsys.readouterr().out
  assert "all 30 statistics and all labels are reproduced" in printed
  assert "0 labels do not follow" in printed
  for name in ("denom", "mean_direct_pct", "ci_direct", "p_total_two_sided"):
    assert f"\n{name} " in printed


def test_a_wrong_label_gives_status_one(call, content, tmp_path, capsys):
  writer = content["expected"]["writers"].pop()
  assert call(released_cell.write(tmp_path / "cell.json", content)) == 1
  printed = capsys.readouterr().out
  assert f"expected writers: {writer} recomputed, not there" in printed
  assert "NOT reproduced: no statistic; 1 labels" in printed


def test_a_wrong_number_gives_status_one(call, content, tmp_path, capsys):
  good = released_cell.write(tmp_path / "good.json", content)
  content["discovery"][3]["denom"] *= 1.01
  bad = released_cell.write(tmp_path / "bad.json", content)
  assert call(good, bad) == 1
  printed = capsys.readouterr().out
  assert "NOT reproduced: denom; 0 labels" in printed
  assert "all 30 statistics" in printed


def test_a_broken_file_gives_status_two(call, content, tmp_path, capsys):
  good = released_cell.write(tmp_path / "good.json", content)
  del content["path_patching"]
  bad = released_cell.write(tmp_path / "bad.json", content)
  assert call(good, bad) == 2
  captured = capsys.readouterr()
  assert captured.out == ""
  assert captured.err.count("\n") == 1
  assert f"{bad}: got no field 'path_patching'" in captured.err


def test_without_a_file_there_is_nothing_to_do(call, capsys):
  assert call() == 2
  assert "expected all three, or --check alone" in capsys.readouterr().err


def run_script(argv):
  with pytest.raises(SystemExit) as ended:
    command_line.run(writers_cancellers.main, list(map(str, argv)))
  return ended.value.code


@pytest.fixture
def planted(monkeypatch, tmp_path):
  """The script's models and prompts are the planted ones."""
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  model = planted_writers.model()
  prompts = planted_writers.prompts(model.tokenizer)
  monkeypatch.setattr(writers_cancellers, "load_model", lambda spec: model)
  monkeypatch.setattr(
    writers_cancellers, "load_cell", lambda *args, **kwargs: prompts
  )


def test_a_cell_is_measured_and_told(planted, tmp_path, capsys):
  out = tmp_path / "out"
  argv = ["--model", "x", "--task", "modular", "--out", out, "--splits", 10]
  assert run_script(argv) == 0
  printed = capsys.readouterr().out
  assert "\nwriters: L0.H0, L0.H1\ncancellers: L0.H2\n" in printed
  assert printed.count("\n  canonical, interaction ") == 2
  assert "40 of 40 pairs with a swing" in printed
  assert "p = 0.333 of all 3 splits" in printed
  assert "5 for the attributions, 5 for the paths, and total" in printed
  names = {"attributions", "paths", "lesions-zero", "lesions-mean"}
  written = {path.name for path in out.iterdir()}
  assert written == {f"{name}.nc" for name in names} | {"candidates.csv"}
  again = judge({name: results.load(out / f"{name}.nc") for name in names})
  with open(out / "candidates.csv", newline="") as file:
    rows = list(csv.DictReader(file))
  assert [row["head"] for row in rows] == [row["head"] for row in again.rows()]
  assert rows[0]["direct"] == f"{again.rows()[0]['direct']:.6g}"


def test_check_and_measuring_do_not_mix(tmp_path, capsys):
  assert run_script(["--check", "x.json", "--model", "y"]) == 2
  assert "1 of --model, --task and --out beside --check" in (
    capsys.readouterr().err
  )
  assert run_script(["--model", "y"]) == 2
