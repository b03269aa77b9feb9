"""Are the multiply-adds those that a loop over rows and layers counts?"""

import numpy as np
import pytest
from helpers import FAMILIES, PUBLIC

from headjax.interventions import cost
from headjax.models import weights


def matrices(config, names):
  """Multiply-adds per row: the parameters of the matrices of one layer."""
  shapes = weights.shapes(config)
  return sum(int(np.prod(shapes[n][1:])) for n in names if n in shapes)


@pytest.mark.parametrize("family", ["gpt2", "llama_kv2", "olmoe"])
def test_sweep_cost_is_that_of_a_loop(family):
  config = (FAMILIES | PUBLIC)[family]
  start, answer = np.array([3, 0, 5]), np.array([7, 2, 5])
  q = matrices(config, ["W_Q"])
  kv = matrices(config, ["W_K", "W_V"])
  out = matrices(config, ["W_O"])
  mlp = matrices(config, ["W_in", "W_gate", "W_out"])
  if config.n_experts:
    assert matrices(config, ["W_router"]) == 16 * 5
    mlp = 16 * 5 + mlp * 2 // 5  # two of five experts
  per_key = 2 * config.n_heads * config.d_head
  total = 0
  for first, last in zip(start.tolist(), answer.tolist(), strict=True):
    for source in range(config.n_layers):
      for pos in range(first, last + 1):
        asks = [
          layer < config.n_layers - 1 or pos == last
          for layer in range(config.n_layers)
        ]
        total += config.n_heads * mlp * asks[source]
        for layer in range(source + 1, config.n_layers):
          ask = q + out + mlp + per_key * (pos + 1)
          total += config.n_heads * (kv + ask * asks[layer])
    for pos in range(last + 1):
      block = q + kv + out + mlp + per_key * (pos + 1)
      total += 2 * config.n_layers * block
  assert cost.suffix_sweep(config, start, answer) == total
