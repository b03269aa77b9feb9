"""Does the benchmark of leakage time what it says, on a small model?"""

import json

import numpy as np
import pytest
from helpers import FAMILIES, GPT2, SCREENING
from one_line import refusal

from experiments.benchmarks import leakage
from headjax.models import spaces, weights


@pytest.mark.slow
def test_it_prints_the_times_their_ratios_and_the_rates(monkeypatch, capsys):
  monkeypatch.setattr(leakage, "GPT2_SMALL", GPT2)
  leakage.main(["--examples", "5", "--chunk", "2", "--repeats", "1"])
  row = json.loads(capsys.readouterr().out)
  assert row["examples"] == 5
  assert row["tokens"] == "6 to 6"
  assert row["times_its_forwards"] > 0
  assert row["whole_times"] >= row["times_its_forwards"]
  assert row["whole_times_of_3"] >= row["times_its_forwards"]
  assert row["matrix_rate"] > row["weights_rate"] > 0


def test_several_tasks_share_what_the_weights_decide():
  row = leakage.ratios(3, 2.0, 1.6, 2.1, 0.8, 0.9)
  assert row == {
    "times_its_forwards": 1.05,
    "whole_times": 1.45,
    "whole_times_of_3": 1.2,
    "whole_times_of_3_as_one": 1.5,
  }


@pytest.mark.parametrize("family", ["gpt2", "llama_kv2", "screening"])
def test_products_are_counted_pair_by_pair(family):
  config = (FAMILIES | {"gpt2": GPT2, "screening": SCREENING})[family]
  total, writes = 0, config.d_head * config.d_model
  for letter in spaces.inputs(config):
    shape = weights.shapes(config)[f"W_{letter}"]  # each K/V head once
    width = np.prod(shape[2:])
    for layer in range(config.n_layers):
      total += layer * config.n_heads * writes * width
  assert leakage.pair_products(config) == total


@pytest.mark.parametrize("half", [["--model", "m"], ["--task", "sva"]])
def test_a_model_needs_a_task_and_a_task_a_model(half):
  with refusal("--model", "one of"):
    leakage.main(half)
