"""What share of the machine's arithmetic does training reach?"""

import numpy as np

from headjax.models import cost
from headjax.models.config import ModelConfig


def step_madds(config: ModelConfig, batch: int) -> int:
  """Multiply-adds of a training step: a forward, and twice that backward.

  Attention is counted at its causal size, and nothing that is computed anew.

  Args:
    config: of the model.
    batch: sequences of `config.n_ctx` tokens.
  """
  tokens = batch * config.n_ctx
  logits = tokens * config.d_model * config.d_vocab
  lengths = np.full(batch, config.n_ctx)
  return 3 * (cost.forward(config, lengths) + logits)
