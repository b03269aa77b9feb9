"""Does the script say by its status whether a released cell is reproduced?"""

import csv

import jax
import planted_writers
import pytest
import released_cell

import headjax
from experiments import writers_cancellers
from headjax import command_line, results
from headjax.reports.html import commands
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
  assert (
    "expected all three, or --check alone, or --table alone"
    in capsys.readouterr().err
  )


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
  out = tmp_path / "cells" / "one"
  argv = ["--model", "x", "--task", "modular", "--out", out, "--splits", 10]
  assert run_script([*argv, "--parts", "none"]) == 0
  printed = capsys.readouterr().out
  assert "\nwriters: L0.H0, L0.H1\ncancellers: L0.H2\n" in printed
  assert printed.count("\n  canonical, interaction ") == 2
  assert "40 of 40 pairs with a swing" in printed
  assert "p = 0.333 of all 3 splits" in printed
  assert "5 for the attributions, 5 for the paths, and total" in printed
  names = {"attributions", "paths", "lesions-zero", "lesions-mean"}
  files = {f"{name}.nc" for name in names} | {"candidates.csv", "cell.json"}
  files |= {"figures", "commands.json", "report.html"}
  assert {path.name for path in out.iterdir()} == files
  again = judge({name: results.load(out / f"{name}.nc") for name in names})
  rows = read_csv(out / "candidates.csv")
  assert [row["head"] for row in rows] == [row["head"] for row in again.rows()]
  call = commands.read(out / "commands.json")["tables"]
  assert eval(call, {"headjax": headjax}) == again.rows()
  assert rows[0]["direct"] == f"{again.rows()[0]['direct']:.6g}"
  drawn = {path.name for path in (out / "figures").glob("*.png")}
  assert drawn == {"attribution.png", "roles.png", "lesions.png"}
  assert run_script(["--table", tmp_path / "cells"]) == 0
  assert "canonical in 1 of 1 cells" in capsys.readouterr().out
  [row] = read_csv(tmp_path / "cells" / "cells.csv")
  assert (row["model"], row["task"]) == ("planted", "modular")
  assert row["writer_heads"] == "L0.H0 L0.H1"
  assert row["shuffle_p_holm"] == row["shuffle_p"] == "0.333333"


@pytest.mark.slow
def test_a_cell_is_explained(planted, tmp_path, capsys):
  out = tmp_path / "cells" / "one"
  argv = ["--model", "x", "--task", "modular", "--out", out]
  assert run_script(argv) == 0
  printed = capsys.readouterr().out
  # A single layer has no heads as large beside the groups.
  assert "controls: left out" in printed
  assert "cascade: left out" in printed
  written = {path.stem for path in (out / "tables").iterdir()}
  assert written == {
    "attention", "sources", "geometry", "coverage", "rank-one", "values",
    "importance", "induction", "actions", "written", "transfer",
  }  # fmt: skip
  assert (out / "figures" / "attention.png").exists()
  actions = read_csv(out / "tables" / "actions.csv")
  gone = {row["of"]: float(row["logits"]) for row in actions[:3]}
  assert actions[0]["kind"] == "lesion"
  assert gone["cancellers"] > 0 > gone["writers"]
  assert run_script(["--table", tmp_path / "cells"]) == 0
  assert "induction heads: 3 shared, 3.00 by chance" in capsys.readouterr().out


def read_csv(path):
  with open(path, newline="") as file:
    return list(csv.DictReader(file))


def test_check_and_measuring_do_not_mix(tmp_path, capsys):
  assert run_script(["--check", "x.json", "--model", "y"]) == 2
  assert "1 of --model, --task and --out beside --check" in (
    capsys.readouterr().err
  )
  assert run_script(["--model", "y"]) == 2
  assert run_script(["--table", "x", "--check", "y"]) == 2
  assert "beside --check beside --table" in capsys.readouterr().err
  argv = ["--model", "y", "--task", "modular", "--out", tmp_path / "out"]
  assert run_script([*argv, "--parts", "sources,x"]) == 2
  assert "--parts: got 'x'" in capsys.readouterr().err
  assert run_script(["--table", tmp_path]) == 2
  assert "no */cell.json in" in capsys.readouterr().err
