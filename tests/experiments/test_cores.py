"""Do the scripts of cores end in one line on bad input, and write nothing?"""

import numpy as np
import pytest

from experiments import cores_agreement, cores_markov, cores_modular
from experiments.benchmarks import ensembles
from headjax import command_line, results


def run(main, argv, capsys):
  with pytest.raises(SystemExit) as end:
    command_line.run(main, [str(word) for word in argv])
  return end.value.code, capsys.readouterr()


BAD = {
  "unknown config": (cores_markov, ["--config", "chain"], "chain"),
  "config of another": (cores_markov, ["--config", "modular"], "--config"),
  "no epochs": (cores_markov, ["--epochs", 0], "--epochs"),
  "too little text": (cores_markov, ["--test", 3], "--test"),
  "chain of sums": (cores_modular, ["--config", "markov"], "--config"),
  "modulus": (cores_modular, ["--p", 1], "--p"),
  "branch": (cores_modular, ["--branch", -5], "--branch"),
  "dropout": (cores_modular, ["--dropout", 1], "--dropout"),
  "decaying": (cores_modular, ["--decaying", "gains"], "--decaying"),
  "every": (cores_modular, ["--every", 0], "--every"),
  "model": (cores_agreement, ["--models", "no-such"], "no-such"),
  "examples": (
    cores_agreement, ["--models", "x", "--examples", 0], "--examples",
  ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_status_2(name, tmp_path, capsys):
  script, argv, word = BAD[name]
  out = tmp_path / "out"
  code, said = run(script.main, [*argv, "--out", out], capsys)
  assert code == 2, said
  assert word in said.err and said.err.count("\n") == 1
  assert not out.exists()


@pytest.mark.parametrize("script", [cores_agreement, cores_markov,
                                    cores_modular])  # fmt: skip
def test_a_file_in_place_of_the_folder_is_refused(script, tmp_path, capsys):
  out = tmp_path / "out"
  out.write_text("kept")
  argv = ["--models", "x"] if script is cores_agreement else []
  code, said = run(script.main, [*argv, "--out", out], capsys)
  assert code == 2 and "output folder" in said.err
  assert out.read_text() == "kept"


def test_seeds_of_the_benchmark_are_counts(capsys):
  code, said = run(ensembles.main, ["--seeds", 0], capsys)
  assert code == 2 and "--seeds" in said.err and said.err.count("\n") == 1


@pytest.mark.slow
def test_the_chain_s_script_writes_what_it_prints(tmp_path, capsys):
  argv = ["--epochs", 1, "--sequences", 128, "--test", 128, "--scored", 64]
  code, said = run(cores_markov.main, [*argv, "--out", tmp_path], capsys)
  assert code == 0, said.err
  found = results.load(tmp_path / "curves.nc")
  assert found.sizes["model"] == 3
  assert found["rank"].values[:3].tolist() == [1, 2, 3]
  models = results.load(tmp_path / "models.nc")
  here = {"model": models["model"], "rank": models["rank"].astype(int)}
  kept = found["keep"].sel(here).values
  np.testing.assert_array_equal(kept, models["keep_core"].values)
  assert models.attrs["task"] == "markov chain"
  for name in ("models.csv", "pairs.nc", "ranks.png", "spectrum.png"):
    assert (tmp_path / name).stat().st_size
  assert "eigenvalue error" in said.out


@pytest.mark.slow
def test_the_sums_script_follows_both_branches(tmp_path, capsys):
  argv = [
    "--config", "modular-small", "--p", 7, "--epochs", 40, "--branch", 20,
    "--every", 20,
  ]  # fmt: skip
  code, said = run(cores_modular.main, [*argv, "--out", tmp_path], capsys)
  assert code == 0, said.err
  found = results.load(tmp_path / "cores.nc")
  assert found["branch"].values.tolist() == ["decay", "none"]
  assert found["epoch"].values.tolist() == [0, 20, 40]
  assert np.isnan(found["rank"].sel(branch="none", epoch=20)).all()
  for name in ("cores.csv", "cores-decay.png", "cores-none.png", "spectra.png"):
    assert (tmp_path / name).stat().st_size
  table = (tmp_path / "cores.csv").read_text()
  assert table.count("\n") == 1 + 3 * (3 + 1)
  (tmp_path / "cores.csv").unlink()
  code, said = run(cores_modular.main, [*argv, "--out", tmp_path], capsys)
  assert code == 0 and (tmp_path / "cores.csv").read_text() == table
