"""Which spaces do the heads of a model write and read?

Every space is of the stream, with leading axes `[layer, head]`, per query head,
whatever the design: a frozen write, a block reader, norms by block.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from headjax.checks import check_choice
from headjax.geometry.subspaces import (
  Basis,
  embed,
  fold,
  orthonormal_basis,
  write_space,
)
from headjax.models import weights
from headjax.models.config import ModelConfig


def write_spaces(params: Any, config: ModelConfig) -> Basis:
  """`[layer, head, d_model, d_head]`: what each head can write.

  A norm after the attention output is left out: it scales the coordinates of
  all heads' sum, so that no head writes in a space of its own behind it.
  """
  return write_space(weights.per_query_head(params, config, "W_O"))


def inputs(config: ModelConfig) -> str:
  """The letters of what a head reads: G is the gate of a screening model."""
  return "QKVG" if config.attention == "screening" else "QKV"


def read_spaces(
  params: Any,
  config: ModelConfig,
  letter: str,
  *,
  folded: bool,
  basis: Callable[[jax.Array], Basis] = orthonormal_basis,
) -> Basis:
  """What each head reads of the stream through one of its inputs.

  Args:
    params: of the model.
    config: of the model.
    letter: one of `inputs(config)`; a value adapter is left out.
    folded: whether the gain and the centring of the norm count. With norms by
      block, whose scales differ, they count as if the scales were equal. A
      norm of q and k, which scales all heads' coordinates, is left out.
    basis: what makes the columns of a matrix orthonormal; `gram_basis` is
      faster.

  Returns:
    Basis `[layer, head, d_model, d_head]`, or d_key wide.

  Raises:
    ValueError: there is no such input.

  Source: paper A, section 3 (R_X0 and R_X).
  """
  maps, frames = read_maps(params, config, letter, folded=folded)
  space = basis(maps)
  return space if frames is None else embed(space, frames)


def read_maps(
  params: Any, config: ModelConfig, letter: str, *, folded: bool
) -> tuple[jax.Array, jax.Array | None]:
  """Each head's map from what its norm sees to one of its inputs.

  Args:
    params: of the model.
    config: of the model.
    letter: one of `inputs(config)`.
    folded: as in `read_spaces`.

  Returns:
    `[layer, head, d_model, d_head]` and None; of a block reader in block
    coordinates, `[layer, head, d_head, d_head]`, and with the blocks,
    `[layer, head, d_model, d_head]`.
  """
  check_choice("letter", letter, inputs(config))
  if config.read.kind == "block_norm":
    return _normed_by_block(params, config, letter, folded), None
  if letter in config.read.blocks:
    W = weights.get(params, f"W_{letter}")
    frames = jnp.asarray(config.read.dense(config.sizes), W.dtype)
    return _map(params, config, W, "block_norm_gain", folded), frames
  W = weights.per_query_head(params, config, f"W_{letter}")
  return _map(params, config, W, "attn_norm_gain", folded), None


def _map(params, config, W: jax.Array, name: str, folded: bool) -> jax.Array:
  """A map with the norm before it, one for all heads or one a head."""
  if not folded or config.norm == "none" or not config.norms_input:
    return W
  gain = weights.norm_gain(params, config, name)
  gain = jnp.ones_like(W[..., 0]) if gain is None else gain
  gain = gain.reshape(gain.shape[0], -1, W.shape[-2])
  return fold(W, gain, centred=centres(config))


def centres(config: ModelConfig) -> bool:
  """Whether the model's norms subtract the mean."""
  return config.norm in ("layernorm", "layernorm_bare")


def _normed_by_block(params, config, letter: str, folded: bool) -> jax.Array:
  """A full-width map with a norm of each block before it."""
  W = weights.per_query_head(params, config, f"W_{letter}")
  by_block = W.reshape(*W.shape[:2], -1, config.d_head, W.shape[-1])
  if folded and config.norm != "none":
    gain = weights.norm_gain(params, config, "block_norm_gain")
    if gain is not None:
      by_block = by_block * gain[:, None, :, :, None]
    if centres(config):
      by_block = by_block - by_block.mean(axis=-2, keepdims=True)
  blocks = jnp.asarray(config.read.dense(config.sizes), W.dtype)
  return jnp.einsum("lbde,lhbef->lhdf", blocks, by_block)
