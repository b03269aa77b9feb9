"""Does the benchmark of ablations count the layers that each group needs?"""

import json

import jax
import pytest

from experiments.benchmarks import ablations
from headjax.models.config import ModelConfig


@pytest.mark.slow
def test_it_prints_times_and_the_forwards_that_are_needed(monkeypatch, capsys):
  config = ModelConfig(4, 4, 16, 5, 24, 200, 64)
  monkeypatch.setattr(ablations, "GPT2_SMALL", config)
  monkeypatch.setattr(ablations, "CIRCUIT", ((2, 0), (3, 1)))
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  argv = "--examples 3 --length 64 --draws 2 --repeats 1".split()
  ablations.main(argv)
  row = json.loads(capsys.readouterr().out)
  assert row["groups"] == 16 and row["examples"] == row["chunk"] == 3
  # All groups start at layer 2, but for the single head of layer 3.
  wanted = 1 + (row["distinct_groups"] - 1) * 2 / 4 + 1 / 4
  assert row["layer_forwards"] == pytest.approx(wanted)
  times = row["sweep_s"] / row["forward_s"] / row["needed_forwards"]
  assert row["times_needed"] == pytest.approx(times)
  # By hand: a layer's matrices and attention of 64 tokens, a last layer's.
  matrices = 4 * 16 * 20 + 2 * 16 * 24
  layer = 64 * (matrices + 64 * 40)
  last = 64 * 2 * 16 * 20 + 2 * 16 * 20 + 2 * 16 * 24 + 64 * 40
  logits = 16 * 200
  groups = row["distinct_groups"]
  done = (groups - 1) * layer + groups * (last + logits)
  wanted = 1 + done / (4 * layer + logits)
  assert row["needed_forwards"] == pytest.approx(wanted)
