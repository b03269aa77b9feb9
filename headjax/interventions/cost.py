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


def edge_sweep(
  config: ModelConfig,
  start: np.ndarray,
  answer: np.ndarray,
  layers: np.ndarray,
) -> int:
  """Multiply-adds of patching edges in a causal model, with its two runs.

  An edge's rows pass one input of one head, its attention and its write, the
  reader's MLP, all later blocks as in `suffix_sweep`, and the unembedding at
  the answer.

  Args:
    config: of the model.
    start: `[example]` first changed position.
    answer: `[example]` position of the metric.
    layers: `[edge]` the readers' layers.
  """
  block, last = cost.block_cost(config), config.n_layers - 1
  start, answer = start.astype(np.int64), answer.astype(np.int64)
  width = answer - start + 1
  rows, examples = width.sum(), len(width)
  seen = ((start + 1 + answer + 1) * width // 2).sum()
  asked = (answer + 1).sum() * block.key
  in_last = np.count_nonzero(layers == last)
  in_earlier = len(layers) - in_last
  later = (last - 1 - layers[layers < last]).sum()
  # The query maps of the heads are of one size, and so are the writes.
  reader = rows * block.q + seen * block.key
  ending = rows * block.kv + examples * (block.q + block.o + block.mlp) + asked
  total = len(layers) * reader // config.n_heads
  total += in_last * examples * (block.o // config.n_heads + block.mlp)
  total += in_earlier * rows * (block.o // config.n_heads + block.mlp)
  total += later * (rows * block.dense + seen * block.key)
  total += in_earlier * ending
  total += len(layers) * examples * config.d_model * config.d_vocab
  return int(total + 2 * cost.forward(config, answer + 1))
