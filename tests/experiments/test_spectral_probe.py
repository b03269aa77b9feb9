"""Does the script find the planted circuit, alone, among seeds, in a series?"""

import csv
import dataclasses

import jax
import planted_circuit
import pytest

from experiments import spectral_probe
from headjax import command_line, results

SIZE = ["--rows", "12", "--length", "64", "--null", "20", "--draws", "6"]


@pytest.fixture
def call(tmp_path, monkeypatch):
  """Runs the script on planted models; returns its exit status."""
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  planted = planted_circuit.planted()

  def load(spec):
    return dataclasses.replace(planted, name=str(spec))

  def load_series(series):
    for step in series:
      model = load(f"run@{step}")
      if step == 10:  # nothing is copied yet
        model = dataclasses.replace(
          model, params=jax.tree.map(lambda x: 0 * x, model.params)
        )
      yield step, model

  monkeypatch.setattr(spectral_probe, "load_model", load)
  monkeypatch.setattr(spectral_probe, "find_series", lambda _: [10, 20, 40])
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


@pytest.mark.parametrize(
  ("argv", "said"),
  [
    (["--models", "one"], "length: got 256 tokens; expected 64 to 64"),
    (["--models", "one", "--probe", "names"], "without a tokenizer"),
    (["--models", "one", "one", *SIZE], "--models: got the names one, one"),
    (["--models", "one", "--rows", "0"], "--rows: got 0"),
  ],
)
def test_what_cannot_be_measured_is_one_line(call, capsys, argv, said):
  assert call(*argv) == 2
  lines = capsys.readouterr().err.splitlines()
  assert said in lines[-1] and lines[-1].startswith("error: ")
