"""How many multiply-adds must a sweep do? The floor that its speed is held to.

One multiply-add is two floating-point operations. Embeddings, norms,
nonlinearities and the two-token unembedding are not counted.
"""

import dataclasses

import numpy as np

from headjax.models.config import ModelConfig


@dataclasses.dataclass(frozen=True)
class BlockCost:
  """Multiply-adds of one block per row, by part.

  Attributes:
    q: the query projection.
    kv: the key and value projections.
    o: the output projection.
    mlp: the MLP.
    key: scores and mixture, per key that a row sees.
  """

  q: int
  kv: int
  o: int
  mlp: int
  key: int

  @property
  def dense(self) -> int:
    """All matrices of the block."""
    return self.q + self.kv + self.o + self.mlp


def block_cost(config: ModelConfig) -> BlockCost:
  """The parameters of a block's matrices, and its attention per key."""
  heads = config.n_heads * config.d_head
  matrices = 3 if config.mlp == "swiglu" else 2
  return BlockCost(
    q=config.d_model * heads,
    kv=2 * config.d_model * config.n_kv_heads * config.d_head,
    o=config.d_model * heads,
    mlp=matrices * config.d_model * config.d_mlp,
    key=2 * heads,
  )


def forward(config: ModelConfig, lengths: np.ndarray) -> int:
  """Multiply-adds of one causal forward over sequences of some lengths."""
  cost = block_cost(config)
  lengths = lengths.astype(np.int64)
  keys = (lengths * (lengths + 1) // 2).sum()
  per_layer = lengths.sum() * cost.dense + keys * cost.key
  return int(config.n_layers * per_layer)


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
  cost = block_cost(config)
  start, answer = start.astype(np.int64), answer.astype(np.int64)
  width = answer - start + 1
  rows, examples = width.sum(), len(width)
  # A row at position p sees p + 1 keys.
  seen = ((start + 1 + answer + 1) * width // 2).sum()
  finish = rows * cost.mlp
  whole = rows * cost.dense + seen * cost.key
  ending = rows * cost.kv + examples * (cost.q + cost.o + cost.mlp)
  ending += (answer + 1).sum() * cost.key
  last = config.n_layers - 1
  later = last * (last - 1) // 2  # whole blocks after each source, summed
  per_head = last * (finish + ending) + later * whole + examples * cost.mlp
  runs = 2 * forward(config, answer + 1)
  return int(config.n_heads * per_head + runs)
