"""Do the benchmarks of edges and circuits measure what they print?"""

import json

import jax
import pytest

from experiments.benchmarks import acdc, edges
from headjax.models.config import ModelConfig

TINY = ModelConfig(3, 4, 16, 4, 24, 29, 12)


class Rate:
  """A matrix rate that is always the same."""

  def measure(self):
    return 1e9


@pytest.fixture(autouse=True)
def small(monkeypatch):
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  monkeypatch.setattr(edges, "MatrixRate", Rate)
  monkeypatch.setattr(edges, "GPT2", TINY)
  monkeypatch.setattr(acdc, "SMALL", TINY)
  # The benchmark turns the cache off for the whole process.
  before = jax.config.jax_enable_compilation_cache
  yield
  jax.config.update("jax_enable_compilation_cache", before)


@pytest.mark.slow
def test_both_forms_of_edges_agree_and_the_whole_is_estimated(capsys):
  edges.main(["--share", "0.25", "--general", "5", "--examples", "3"])
  [row] = map(json.loads, capsys.readouterr().out.splitlines())
  assert row["all_edges"] == 144 and row["edges"] == 36
  assert row["largest_kl"] > 1e-12
  assert row["largest_difference_of_forms"] < 1e-3 * row["largest_kl"] + 1e-9
  hours = row["seconds"] * 4 / 3600
  assert row["all_edges_hours"] == pytest.approx(hours, abs=1e-3)
  assert row["naive_over_floor"] > 1


@pytest.mark.slow
def test_all_batch_sizes_find_the_same_circuit(capsys):
  acdc.main(["--threshold", "1e-5", "--speculate", "1", "6"])
  alone, batched = map(json.loads, capsys.readouterr().out.splitlines())
  assert alone["decisions"] == batched["decisions"] == alone["batches"]
  assert batched["batches"] < alone["batches"]
  assert batched["same_circuit"] and 0 < alone["edges_in_circuit"]
