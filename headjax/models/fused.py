"""Attention for training: nothing in between can be read, so it may be fast.

On GPUs, half-precision attention is one kernel of cuDNN; on CPUs, heads come
before positions, so that every product is a plain matrix product, and so they
do where scores are capped, which no kernel does; elsewhere JAX's own attention
decides.
"""

import jax
import jax.numpy as jnp

from headjax.models import softmax
from headjax.models.config import ModelConfig
from headjax.models.layers import bend, wide
from headjax.models.softmax import KV, Context


def attend(
  config: ModelConfig,
  window: jax.Array,
  q: jax.Array,
  context: Context,
  kv: KV,
) -> jax.Array:
  """The heads' outputs, without the scores and the pattern.

  Args:
    config: of the model.
    window: scalar int, how many tokens a query sees; 0 means all.
    q: `[batch, pos, head, d_head]`, before rotary.
    context: of the queries.
    kv: keys, after rotary, and values, of the same positions.

  Returns:
    `[batch, pos, head, d_head]`.
  """
  q = softmax.turn(config, q, context)
  mask = None
  if any(config.windows) or not (context.plain and kv.context.plain):
    mask = softmax.allowed(
      context, kv.context, causal=config.causal, window=window
    )
  if jax.default_backend() == "cpu" or config.score_cap:
    return _head_major(config, q, kv, mask)
  half = q.dtype in (jnp.bfloat16, jnp.float16)
  kernel = jax.default_backend() == "gpu" and half and mask is None
  return jax.nn.dot_product_attention(
    q,
    kv.k,
    kv.v,
    mask=mask,
    scale=config.score_scale,
    is_causal=config.causal and mask is None,
    implementation="cudnn" if kernel else None,
  )


def _head_major(config, q, kv, mask):
  q, k, v = (jnp.swapaxes(x, 1, 2) for x in (q, kv.k, kv.v))
  scores = (q * config.score_scale) @ jnp.swapaxes(k, 2, 3)
  scores = bend(scores, config.score_cap)
  if mask is None and config.causal:
    mask = jnp.tri(scores.shape[-1], dtype=bool)
  dtype = wide(scores.dtype)
  scores = scores.astype(dtype)
  if mask is not None:
    scores = jnp.where(mask, scores, jnp.finfo(dtype).min)
  pattern = jax.nn.softmax(scores, axis=-1).astype(v.dtype)
  return jnp.swapaxes(pattern @ v, 1, 2)
