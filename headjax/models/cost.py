"""How many multiply-adds does a forward need?

One multiply-add is two floating-point operations. Embeddings, norms,
nonlinearities and the two-token unembedding are not counted.
"""

import dataclasses
import math

import numpy as np

from headjax.models.config import ModelConfig
from headjax.models.weights import shapes


@dataclasses.dataclass(frozen=True)
class BlockCost:
  """Multiply-adds of one block per row, by part.

  Attributes:
    q: what only asking rows need: queries and, in screening models, gates.
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
  """What a row needs of a block's matrices, and its attention per key.

  A frozen write has no matrix and counts as nothing. Of experts those count
  that are chosen, although all of them are computed.
  """
  sizes = _sizes(config)
  share = config.experts_per_token / config.n_experts if config.n_experts else 1

  def total(*names):
    return sum(sizes.get(name, 0) for name in names)

  return BlockCost(
    q=total("W_Q", "W_G"),
    kv=total("W_K", "W_V", "adapter_in", "adapter_out"),
    o=total("W_O"),
    mlp=total("W_router") + round(share * total("W_in", "W_gate", "W_out")),
    key=config.n_heads * (config.d_key + config.d_head),
  )


def block_size(config: ModelConfig) -> int:
  """How many numbers the parameters of one block are."""
  held = {"W_E", "W_pos", "W_U", "s_E", "s_F"}
  held |= {"final_norm_gain", "final_norm_bias"}
  return sum(n for name, n in _sizes(config).items() if name not in held)


def _sizes(config):
  """Weight -> how many numbers it has, per layer inside a block."""
  return {name: math.prod(s[1:]) for name, s in shapes(config).items()}


def forward(config: ModelConfig, lengths: np.ndarray) -> int:
  """Multiply-adds of one causal forward over sequences of some lengths."""
  cost = block_cost(config)
  lengths = lengths.astype(np.int64)
  keys = (lengths * (lengths + 1) // 2).sum()
  per_layer = lengths.sum() * cost.dense + keys * cost.key
  return int(config.n_layers * per_layer)
