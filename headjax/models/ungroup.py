"""What if every query head had keys and values of its own? The same model.

Grouped K/V heads are repeated, so that the function is unchanged and a gradient
tells query heads apart.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from headjax.models import weights
from headjax.models.config import ModelConfig

# Weight -> the axis of its K/V heads, or of these with their widths flattened.
_PER_HEAD = {"W_K": 2, "W_V": 2, "b_K": 1, "b_V": 1}
_FLAT = {"k_norm_gain": 1, "k_norm_bias": 1, "adapter_out": 2}


def ungroup(config: ModelConfig, params: Any) -> tuple[ModelConfig, Any]:
  """The same model with one K/V head for each query head.

  Args:
    config: of the model.
    params: of the model.

  Returns:
    Config and parameters; those given where nothing is grouped.
  """
  if config.group_size == 1:
    return config, params
  leaves = {
    name: _repeat(config, name, weights.get(params, name))
    for name in weights.shapes(config)
  }
  ungrouped = dataclasses.replace(config, n_kv_heads=config.n_heads)
  return ungrouped, weights.nested(leaves)


def _repeat(config: ModelConfig, name: str, leaf: jax.Array) -> jax.Array:
  if name in _PER_HEAD:
    return jnp.repeat(leaf, config.group_size, axis=_PER_HEAD[name])
  if name in _FLAT:
    axis = _FLAT[name]
    split = (*leaf.shape[:axis], config.n_kv_heads, -1)
    wide = jnp.repeat(leaf.reshape(split), config.group_size, axis=axis)
    return wide.reshape(*leaf.shape[:axis], -1)
  return leaf
