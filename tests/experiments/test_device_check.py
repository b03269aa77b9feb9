"""Does the command measure what it says, and stop in time?"""

import json
import math

import jax
import pytest

from experiments.benchmarks import device_check
from experiments.benchmarks.measure import MatrixRate
from headjax import command_line


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
  """Runs the command at tiny sizes; returns its lines by name."""
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
  cached = jax.config.jax_enable_compilation_cache
  chosen = dict(list(device_check.ARITHMETICS.items())[:2])
  monkeypatch.setattr(device_check, "ARITHMETICS", chosen)
  monkeypatch.setattr(MatrixRate.measure, "__defaults__", (0.02,))  # seconds

  def run(*options):
    argv = ["--small", "--repeats", "1", *options]
    with pytest.raises(SystemExit) as ended:
      command_line.run(device_check.main, argv)
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    return {line["check"]: line for line in map(json.loads, lines)}

  yield run
  jax.config.update("jax_enable_compilation_cache", cached)


@pytest.mark.slow
def test_training_and_patching_are_measured(call):
  found = call()
  assert found["device"]["kind"] == "cpu"
  rates = found["matrix"]
  assert rates["bfloat16_gmac"] > 0 < rates["float32_gmac"]
  half, full = (found[f"training, {name}"] for name in ("bfloat16", "float32"))
  # A new model knows nothing: the loss is about that of a guess.
  assert full["first_loss"] == pytest.approx(math.log(64), abs=0.1)
  for name, tolerance in (("first_loss", 1e-3), ("first_grad_norm", 2e-2)):
    assert half[name] == pytest.approx(full[name], rel=tolerance)
  assert half["first_grad_norm"] != full["first_grad_norm"]
  for line in (half, full):
    assert line["tokens_per_s"] > 0 < line["share_of_rate"]
    assert line["temporaries_gib"] > 0
  patches = found["head patching"]
  assert (patches["examples"], patches["tokens"]) == (8, "15 to 15")
  assert patches["patches_per_second"] > 0


def test_what_is_late_is_left_out_and_said_to_be(call):
  found = call("--minutes", "0")
  late = [name for name, line in found.items() if "left_out" in line]
  assert late == ["training, bfloat16", "training, float32", "head patching"]
