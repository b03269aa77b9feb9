"""How is a GGUF file of a Llama model read, with its quantised weights?"""

import math
import os
from typing import Any

import gguf as gguf_package
import numpy as np

from headjax.checks import check, check_choice
from headjax.models import layout_tables, layouts
from headjax.models.config import ModelConfig
from headjax.models.gguf_header import Header, read_header

KINDS = frozenset(
  gguf_package.GGMLQuantizationType[name]
  for name in ("BF16", "F16", "F32", "Q4_1", "Q8_0")
)
LLAMA_NAMES = {
  "W_E": "token_embd.weight",
  "attn_norm_gain": "blk.{}.attn_norm.weight",
  "W_Q": "blk.{}.attn_q.weight",
  "W_K": "blk.{}.attn_k.weight",
  "W_V": "blk.{}.attn_v.weight",
  "W_O": "blk.{}.attn_output.weight",
  "mlp_norm_gain": "blk.{}.ffn_norm.weight",
  "W_in": "blk.{}.ffn_up.weight",
  "W_gate": "blk.{}.ffn_gate.weight",
  "W_out": "blk.{}.ffn_down.weight",
  "final_norm_gain": "output_norm.weight",
  "W_U": "output.weight",
}
_REQUIRED = object()


def read_file(
  path: str | os.PathLike[str], dtype: np.dtype | str = "float32"
) -> tuple[ModelConfig, dict[str, np.ndarray], dict[str, Any]]:
  """Reads a Llama model from a GGUF file.

  Quantised weights become the numbers that they stand for. The rows of q and
  k, which the format orders for rotary planes of neighbouring coordinates,
  are put back in half-rotation order.

  Args:
    path: the file; tensors are BF16, F16, F32, Q4_1 or Q8_0.
    dtype: float type of the result.

  Returns:
    The config, weight -> array in the stored shapes of `weights.py`, and the
    metadata, which hold the vocabulary.

  Raises:
    ValueError: if the file is damaged or unsupported, or if metadata and
      tensors disagree.
  """
  header = read_header(path, KINDS)
  config = _config(header, str(path))
  shapes = {name: tensor.shape for name, tensor in header.tensors.items()}
  layouts.check_heads(config, shapes.values(), str(path))
  layout = layout_tables.llama(config, LLAMA_NAMES, interleaved=True)
  layouts.check_layout(layout, shapes, str(path))
  tensors = (
    (name, _numbers(tensor)) for name, tensor in header.tensors.items()
  )
  weights = layouts.assemble(config, layout, tensors, np.dtype(dtype))
  return config, weights, header.fields


def _numbers(tensor):
  # A damaged scale may be infinite, which is found out when the weights are
  # packed; here it would only be a warning.
  with np.errstate(all="ignore"):
    return gguf_package.dequantize(tensor.rows, tensor.kind)


def _config(header: Header, source: str) -> ModelConfig:
  fields = header.fields
  check_choice(
    f"{source}: general.architecture",
    str(fields.get("general.architecture")),
    ["llama"],
  )

  def number(key, kind=int, default=_REQUIRED):
    got = fields.get(f"llama.{key}", default)
    check(
      type(got) is kind and 0 < got < math.inf,
      f"{source}: llama.{key}",
      "no such field" if got is _REQUIRED else repr(got)[:40],
      f"a positive {kind.__name__}",
      "use an undamaged file",
    )
    return got

  n_layers = number("block_count")
  layouts.check_layers(n_layers, len(header.tensors), source)
  n_heads, d_model = number("attention.head_count"), number("embedding_length")
  d_head = number("attention.key_length", default=d_model // n_heads or 1)
  _require(fields, source, "attention.value_length", d_head)
  _require(fields, source, "rope.dimension_count", d_head)
  _require(fields, source, "rope.scaling.type", "none")
  _require(fields, source, "expert_count", 0)
  embedding = header.tensors.get("token_embd.weight")
  return ModelConfig(
    n_layers=n_layers,
    n_heads=n_heads,
    n_kv_heads=number("attention.head_count_kv", default=n_heads),
    d_model=d_model,
    d_head=d_head,
    d_mlp=number("feed_forward_length"),
    d_vocab=number("vocab_size", default=embedding and embedding.shape[0]),
    n_ctx=number("context_length"),
    norm="rmsnorm",
    norm_eps=number("attention.layer_norm_rms_epsilon", float),
    positions="rotary",
    rotary_theta=number("rope.freq_base", float, 10_000.0),
    mlp="swiglu",
    qkv_bias=False,
    out_bias=False,
    mlp_bias=False,
    tied="output.weight" not in header.tensors,
  )


def _require(fields, source, key, value):
  """Fails unless a field that changes the forward is absent or `value`."""
  got = fields.get(f"llama.{key}", value)
  check(
    type(got) is type(value) and got == value,
    f"{source}: llama.{key}",
    repr(got)[:40],
    repr(value),
    "this variant of the architecture is not supported",
  )
