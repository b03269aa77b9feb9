"""Does the script measure a series, and end well when it cannot?"""

import csv
import json

import numpy as np
import pytest
import tiny_folder

from experiments import head_series
from headjax import command_line, results
from headjax.interventions.series import at_step
from headjax.reports.summary import summarise


@pytest.fixture
def call(tmp_path, monkeypatch):
  """Runs the script on three checkpoints; returns its exit status."""
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
  for seed, step in enumerate([100, 2, 30]):
    tensors = tiny_folder.tensors(seed).items()
    changed = {name.replace(".", "__"): array for name, array in tensors}
    tiny_folder.write(tmp_path / "series" / f"step{step}", **changed)
  (tmp_path / "pairs.jsonl").write_text("\n".join(tiny_folder.PAIRS))

  def run(**options):
    given = {"series": tmp_path / "series", "task": tmp_path / "pairs.jsonl"}
    given |= {"out": tmp_path / "out"} | options
    argv = [x for k, v in given.items() for x in (f"--{k}", str(v))]
    with pytest.raises(SystemExit) as ended:
      command_line.run(head_series.main, argv)
    return ended.value.code

  return run


def test_a_result_has_a_step_dimension_and_a_row_a_step(call, tmp_path, capsys):
  assert call() == 0
  saved = results.load(tmp_path / "out" / "effects.nc")
  assert saved.effect.dims == ("step", "example", "layer", "head")
  assert saved.step.values.tolist() == [2, 30, 100]
  assert saved.attrs["model"] == "series"
  with open(tmp_path / "out" / "summary.csv", newline="") as file:
    rows = list(csv.DictReader(file))
  printed = capsys.readouterr().out
  for step, row in zip([2, 30, 100], rows, strict=True):
    wanted = summarise(at_step(saved, step)).row
    assert row == {"step": str(step)} | wanted
    assert wanted["largest head"] in printed
  effects = saved.effect.values
  assert np.abs(effects[0] - effects[1]).max() > 1e-3


def test_a_series_that_is_none_is_one_line(call, tmp_path, capsys):
  config = tmp_path / "series" / "step30" / "config.json"
  content = json.loads(config.read_text()) | {"layer_norm_epsilon": 0.1}
  config.write_text(json.dumps(content))
  assert call() == 2
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == 1 and "norm_eps" in lines[0] and "step30" in lines[0]
  assert not (tmp_path / "out").exists()
