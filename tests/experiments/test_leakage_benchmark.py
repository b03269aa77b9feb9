"""Does the benchmark of leakage time what it says, on a small model?"""

import json

import pytest
from helpers import GPT2
from one_line import refusal

from experiments.benchmarks import leakage


@pytest.mark.slow
def test_it_prints_the_three_times_and_their_ratios(monkeypatch, capsys):
  monkeypatch.setattr(leakage, "GPT2_SMALL", GPT2)
  leakage.main(["--examples", "5", "--chunk", "2", "--repeats", "1"])
  row = json.loads(capsys.readouterr().out)
  assert row["examples"] == 5
  assert row["tokens"] == "6 to 6"
  assert row["times_its_forwards"] > 0
  assert row["whole_times"] >= row["times_its_forwards"]


@pytest.mark.parametrize("half", [["--model", "m"], ["--task", "sva"]])
def test_a_model_needs_a_task_and_a_task_a_model(half):
  with refusal("--model", "one of"):
    leakage.main(half)
