"""What do public checkpoints call their tensors, and how are they shaped?

One table of names per layout, `{}` for the layer and, after it, the expert.
Most hold a matrix a weight; GPT-2 and GPT-NeoX hold q, k and v in one.
"""

import functools
import math
from collections.abc import Mapping

import numpy as np

from headjax.models.config import ModelConfig
from headjax.models.layouts import Convert, Layout, Source
from headjax.models.weights import shapes

GPT2 = {
  "W_E": "wte.weight",
  "W_pos": "wpe.weight",
  "attn_norm_gain": "h.{}.ln_1.weight",
  "attn_norm_bias": "h.{}.ln_1.bias",
  "W_O": "h.{}.attn.c_proj.weight",
  "b_O": "h.{}.attn.c_proj.bias",
  "mlp_norm_gain": "h.{}.ln_2.weight",
  "mlp_norm_bias": "h.{}.ln_2.bias",
  "W_in": "h.{}.mlp.c_fc.weight",
  "b_in": "h.{}.mlp.c_fc.bias",
  "W_out": "h.{}.mlp.c_proj.weight",
  "b_out": "h.{}.mlp.c_proj.bias",
  "final_norm_gain": "ln_f.weight",
  "final_norm_bias": "ln_f.bias",
}
NEOX = {
  "W_E": "gpt_neox.embed_in.weight",
  "attn_norm_gain": "gpt_neox.layers.{}.input_layernorm.weight",
  "attn_norm_bias": "gpt_neox.layers.{}.input_layernorm.bias",
  "W_O": "gpt_neox.layers.{}.attention.dense.weight",
  "b_O": "gpt_neox.layers.{}.attention.dense.bias",
  "mlp_norm_gain": "gpt_neox.layers.{}.post_attention_layernorm.weight",
  "mlp_norm_bias": "gpt_neox.layers.{}.post_attention_layernorm.bias",
  "W_in": "gpt_neox.layers.{}.mlp.dense_h_to_4h.weight",
  "b_in": "gpt_neox.layers.{}.mlp.dense_h_to_4h.bias",
  "W_out": "gpt_neox.layers.{}.mlp.dense_4h_to_h.weight",
  "b_out": "gpt_neox.layers.{}.mlp.dense_4h_to_h.bias",
  "final_norm_gain": "gpt_neox.final_layer_norm.weight",
  "final_norm_bias": "gpt_neox.final_layer_norm.bias",
  "W_U": "embed_out.weight",
}
LLAMA = {
  "W_E": "model.embed_tokens.weight",
  "attn_norm_gain": "model.layers.{}.input_layernorm.weight",
  "W_Q": "model.layers.{}.self_attn.q_proj.weight",
  "W_K": "model.layers.{}.self_attn.k_proj.weight",
  "W_V": "model.layers.{}.self_attn.v_proj.weight",
  "W_O": "model.layers.{}.self_attn.o_proj.weight",
  "b_Q": "model.layers.{}.self_attn.q_proj.bias",
  "b_K": "model.layers.{}.self_attn.k_proj.bias",
  "b_V": "model.layers.{}.self_attn.v_proj.bias",
  "b_O": "model.layers.{}.self_attn.o_proj.bias",
  "q_norm_gain": "model.layers.{}.self_attn.q_norm.weight",
  "k_norm_gain": "model.layers.{}.self_attn.k_norm.weight",
  "mlp_norm_gain": "model.layers.{}.post_attention_layernorm.weight",
  "W_in": "model.layers.{}.mlp.up_proj.weight",
  "W_gate": "model.layers.{}.mlp.gate_proj.weight",
  "W_out": "model.layers.{}.mlp.down_proj.weight",
  "b_in": "model.layers.{}.mlp.up_proj.bias",
  "b_gate": "model.layers.{}.mlp.gate_proj.bias",
  "b_out": "model.layers.{}.mlp.down_proj.bias",
  "final_norm_gain": "model.norm.weight",
  "W_U": "lm_head.weight",
}
OUT_NORMS = {
  "attn_out_norm_gain": "model.layers.{}.post_attention_layernorm.weight",
  "mlp_norm_gain": "model.layers.{}.pre_feedforward_layernorm.weight",
  "mlp_out_norm_gain": "model.layers.{}.post_feedforward_layernorm.weight",
}
EXPERTS = {
  "W_router": "model.layers.{}.mlp.gate.weight",
  "W_in": "model.layers.{}.mlp.experts.{}.up_proj.weight",
  "W_gate": "model.layers.{}.mlp.experts.{}.gate_proj.weight",
  "W_out": "model.layers.{}.mlp.experts.{}.down_proj.weight",
}


def gpt2(config: ModelConfig) -> Layout:
  """GPT-2: matrices are `[in, out]`; q, k and v side by side in one."""
  heads, d_head, d = config.n_heads, config.d_head, config.d_model

  def part(index, array):
    piece = array[..., index * d : (index + 1) * d]
    return piece.reshape(*array.shape[:-1], heads, d_head)

  layout = _separate(config, GPT2, transposed=False)
  for kind, name, shape in (
    ("W", "h.{}.attn.c_attn.weight", (d, 3 * d)),
    ("b", "h.{}.attn.c_attn.bias", (3 * d,)),
  ):
    layout |= _fused(config, kind, name, shape, part)
  if not config.tied:  # the one matrix that is [out, in]
    shape = (config.d_vocab, d)
    layout["lm_head.weight"] = Source(shape, {"W_U": np.transpose})
  return layout


def neox(config: ModelConfig) -> Layout:
  """GPT-NeoX: matrices are `[out, in]`; q, k and v of a head in a row."""
  heads, d_head, d = config.n_heads, config.d_head, config.d_model

  def part(index, array):
    piece = array.reshape(heads, 3, d_head, -1)[:, index]
    return np.moveaxis(piece, -1, 0) if array.ndim == 2 else piece[..., 0]

  layout = _separate(config, NEOX)
  name = "gpt_neox.layers.{}.attention.query_key_value."
  layout |= _fused(config, "W", name + "weight", (3 * d, d), part)
  if config.qkv_bias:
    layout |= _fused(config, "b", name + "bias", (3 * d,), part)
  return layout


def llama(
  config: ModelConfig,
  names: Mapping[str, str] = LLAMA,
  *,
  interleaved: bool = False,
) -> Layout:
  """Llama and its kin: matrices are `[out, in]`, nothing is fused.

  Args:
    config: the architecture.
    names: weight -> name of its tensor.
    interleaved: whether the rows of q and k are ordered for rotary planes
      of neighbouring coordinates, and have to be put in half-rotation order.
  """
  layout = _separate(config, names)
  if not interleaved:
    return layout
  for name, source in layout.items():
    [(weight, convert)] = source.targets.items()
    if weight in ("W_Q", "W_K", "b_Q", "b_K"):
      halves = functools.partial(_halves, config.d_head, convert)
      layout[name] = Source(source.shape, {weight: halves}, source.index)
  return layout


def gemma2(config: ModelConfig) -> Layout:
  """Gemma-2: Llama's, with norms of what each half writes."""
  return llama(config, LLAMA | OUT_NORMS)


olmo2 = gemma2


def olmoe(config: ModelConfig) -> Layout:
  """OLMoE: Llama's, with a router and three matrices an expert."""
  return llama(config, LLAMA | EXPERTS)


def _separate(config, names, *, transposed=True) -> Layout:
  """A tensor for every weight that the config has and the table names."""
  layout = {}
  for weight, shape in shapes(config).items():
    if weight not in names:
      continue
    depth = names[weight].count("{}")
    source, convert = _stored(weight, shape[depth:], transposed)
    for index in np.ndindex(*shape[:depth]):
      layout[names[weight].format(*index)] = Source(
        source, {weight: convert}, index
      )
  return layout


def _stored(weight, shape, transposed) -> tuple[tuple[int, ...], Convert]:
  """The shape in the file, and the way from there."""
  if not weight.startswith("W_"):
    return (math.prod(shape),), lambda array: array.reshape(shape)
  if weight in ("W_E", "W_pos"):
    return shape, lambda array: array
  size = math.prod(shape)
  n_out = shape[-1] if weight == "W_O" else size // shape[0]
  if transposed:
    return (n_out, size // n_out), lambda array: array.T.reshape(shape)
  return (size // n_out, n_out), lambda array: array.reshape(shape)


def _fused(config, kind, name, shape, part) -> Layout:
  """A tensor a layer that holds three weights, `part(index, array)` each."""
  targets = {
    f"{kind}_{letter}": functools.partial(part, index)
    for index, letter in enumerate("QKV")
  }
  return {
    name.format(layer): Source(shape, targets, (layer,))
    for layer in range(config.n_layers)
  }


def _halves(d_head, convert, array):
  """Undoes the pairing of rotary planes within each head, then converts."""
  pairs = array.reshape(-1, d_head // 2, 2, *array.shape[1:])
  return convert(pairs.swapaxes(1, 2).reshape(array.shape))
