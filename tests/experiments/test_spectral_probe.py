"""Does the script find the planted circuit, alone, among seeds, in a series?"""

import csv
import dataclasses
import types

import jax
import planted_circuit
import pytest

from experiments import spectral_probe
from headjax import command_line, results
from headjax.interventions import ablations

SIZE = ["--rows", "12", "--length", "64", "--null", "20", "--draws", "6"]


@pytest.fixture
def call(tmp_path, monkeypatch):
  """Runs the script on planted models; returns its exit status."""
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  planted = planted_circuit.planted()

  def load(spec):
    return dataclasses.replace(planted, name=str(spec), digest=str(spec))

  def load_series(series):
    for step in [point.step for point in series]:
      model = load(f"run@{step}")
      if step == 10:  # nothing is copied yet
        model = dataclasses.replace(
          model, params=jax.tree.map(lambda x: 0 * x, model.params)
        )
      yield step, model

  monkeypatch.setattr(spectral_probe, "load_model", load)
  points = [types.SimpleNamespace(step=i, digest=str(i)) for i in (10, 20, 40)]
  monkeypatch.setattr(spectral_probe, "find_series", lambda _: points)
  monkeypatch.setattr(spectral_probe, "load_series", load_series)

  def run(*argv):
    given = [*argv, "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as ended:
      command_line.run(spectral_probe.main, given)
    return ended.value.code

  return run


def table(path):
  with open(path, newline="") as file:
    return list(csv.DictReader(file))


@pytest.mark.slow
def test_seeds_are_compared(call, tmp_path, capsys):
  assert call("--models", "one", "two", *SIZE) == 0
  out = tmp_path / "out"
  for name in ("one", "two"):
    verdicts = table(out / name / "tables" / "verdicts.csv")
    assert [r["circuit"] for r in verdicts] == ["induction", "previous"]
    assert [r["verdict"] for r in verdicts] == ["causal"] * 2
    assert [r["heads"] for r in verdicts] == ["L1H2", "L0H1"]
    assert len(table(out / name / "tables" / "heads.csv")) == 16
    swept = results.load(out / name / "ablations.nc")
    assert swept.sizes["example"] == 12
    for figure in ("ablations", "selectivity"):
      assert (out / name / "figures" / f"{figure}.png").stat().st_size > 1000
  seeds = table(out / "seeds.csv")
  assert [(r["circuit"], r["model"]) for r in seeds] == [
    ("one", "one"), ("two", "one"), ("one", "two"), ("two", "two")
  ]  # fmt: skip
  assert {r["verdict"] for r in seeds} == {"causal"}
  assert [r["induction"] for r in table(out / "models.csv")] == ["1", "1"]
  assert "L1H2" in capsys.readouterr().out


@pytest.mark.slow
def test_a_series_has_tables_along_training(call, tmp_path, capsys):
  assert call("--models", "run", "--series", *SIZE) == 0
  folder = tmp_path / "out" / "run"
  recall = table(folder / "tables" / "recall_induction.csv")
  assert [(r["step"], r["recall"]) for r in recall] == [
    ("10", "0"), ("20", "1"), ("40", "1")
  ]  # fmt: skip
  assert "final induction circuit: step 20 (50.0%)" in capsys.readouterr().out
  assert table(folder / "tables" / "integral.csv")[0]["kept"] == "True"
  for figure in ("trajectories", "integral", "recall"):
    assert (folder / "figures" / f"{figure}.png").stat().st_size > 1000


def made(out):
  """What the tables of a folder say, by name, and that there are figures."""
  assert (out / "one" / "figures" / "ablations.png").stat().st_size > 1000
  return {str(p.relative_to(out)): p.read_text() for p in out.rglob("*.csv")}


@pytest.mark.slow
def test_what_was_stopped_goes_on_to_the_same_tables(
  call, tmp_path, monkeypatch, capsys
):
  out, argv = tmp_path / "out", ["--models", "two", "one", *SIZE]
  without, left = ablations._without, iter(range(9))

  def stop(*args):
    if next(left, None) is None:
      raise KeyboardInterrupt
    return without(*args)

  with monkeypatch.context() as patch:
    patch.setattr(ablations, "_without", stop)
    assert call(*argv) == 130
  assert not (out / "one" / "ablations.nc").exists()
  assert list((out / "one" / "groups").iterdir())
  calls = []

  def count(*args):
    calls.append(args)
    return without(*args)

  with monkeypatch.context() as patch:
    patch.setattr(ablations, "_without", count)
    assert call(*argv) == 0
    resumed, first = made(out), len(calls)
    assert "one: heads were measured before" in capsys.readouterr().out
    assert call(*argv) == 0  # there is nothing left to do
    assert made(out) == resumed and len(calls) == first
  for table in out.rglob("*.csv"):
    table.unlink()
  assert call("--tables") == 0  # loads no model
  assert made(out) == resumed
  out.rename(tmp_path / "resumed")
  with monkeypatch.context() as patch:
    patch.setattr(ablations, "_without", count)
    assert call(*argv) == 0
  assert len(calls) == 2 * first + 8  # the ninth was running: it is lost
  assert made(out) == resumed


@pytest.mark.slow
def test_other_data_are_told_of(call, tmp_path, capsys):
  assert call("--models", "run", "--series", "--shift", "20", *SIZE) == 0
  folder = tmp_path / "out" / "run" / "tables"
  row = table(folder / "shift.csv")[0]
  assert (row["before"], row["after"], row["jaccard"]) == ("L1H2", "L1H2", "1")
  along = table(folder / "shift_induction.csv")
  assert [r["step"] for r in along] == ["20", "40"]
  assert "induction after other data: Jaccard 1.00" in capsys.readouterr().out
  assert call("--tables", "--shift", "40") == 2
  assert "--shift: got 40; expected one of 10, 20" in capsys.readouterr().err


@pytest.mark.parametrize(
  ("argv", "said"),
  [
    (["--models", "one"], "length: got 256 tokens; expected 64 to 64"),
    (["--models", "one", "--probe", "names"], "without a tokenizer"),
    (["--models", "one", "one", *SIZE], "--models: got the names one, one"),
    (["--models", "one", "--rows", "0"], "--rows: got 0"),
    (["--models", "one", "--tables"], "options: got 1 models and --tables"),
    ([], "options: got 0 models; expected --models, or --tables alone"),
    (["--tables"], "no results in"),
  ],
)
def test_what_cannot_be_measured_is_one_line(call, capsys, argv, said):
  assert call(*argv) == 2
  lines = capsys.readouterr().err.splitlines()
  assert said in lines[-1] and lines[-1].startswith("error: ")
