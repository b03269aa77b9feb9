"""How many multiply-adds must a sweep do? Its speed is held to that floor."""

import numpy as np

from headjax.models import cost
from headjax.models.config import ModelConfig


def suffix_sweep(
  config: ModelConfig, start: np.ndarray, answer: np.ndarray
) -> int:
  """Multiply-adds of a causal suffix sweep over all heads, with its two runs.

  A source layer's rows pass its MLP and all later blocks, the last of them
  with keys and values only, except for the answer's row.

  Args:
    config: of the model.
    start: `[example]` first changed position.
    answer: `[example]` position of the metric.
  """
  block = cost.block_cost(config)
  start, answer = start.astype(np.int64), answer.astype(np.int64)
  width = answer - start + 1
  rows, examples = width.sum(), len(width)
  # A row at position p sees p + 1 keys.
  seen = ((start + 1 + answer + 1) * width // 2).sum()
  finish = rows * block.mlp
  whole = rows * block.dense + seen * block.key
  ending = rows * block.kv + examples * (block.q + block.o + block.mlp)
  ending += (answer + 1).sum() * block.key
  last = config.n_layers - 1
  later = last * (last - 1) // 2  # whole blocks after each source, summed
  per_head = last * (finish + ending) + later * whole + examples * block.mlp
  runs = 2 * cost.forward(config, answer + 1)
  return int(config.n_heads * per_head + runs)
