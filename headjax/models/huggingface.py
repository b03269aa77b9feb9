"""How is a Hugging Face folder read? config.json plus safetensors."""

import os
import pathlib
import re
from typing import Any

import numpy as np

from headjax.checks import check, check_choice
from headjax.models import layouts, tensor_files
from headjax.models.config import ModelConfig

GPT2_ACTIVATIONS = {
  "gelu": "gelu",
  "gelu_new": "gelu_tanh",
  "gelu_pytorch_tanh": "gelu_tanh",
  "relu": "relu",
}
LLAMA_NAMES = {
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
  "mlp_norm_gain": "model.layers.{}.post_attention_layernorm.weight",
  "W_in": "model.layers.{}.mlp.up_proj.weight",
  "W_gate": "model.layers.{}.mlp.gate_proj.weight",
  "W_out": "model.layers.{}.mlp.down_proj.weight",
  "final_norm_gain": "model.norm.weight",
  "W_U": "lm_head.weight",
}
# Constants that old files store beside the weights: masks and frequencies.
_BUFFERS = re.compile(
  r"h\.\d+\.attn\.(bias|masked_bias)"
  r"|model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq"
)
_REQUIRED = object()
_LARGEST = 2**127  # numbers of a config have to fit float32


def read_folder(
  folder: str | os.PathLike[str], dtype: np.dtype | str = "float32"
) -> tuple[ModelConfig, dict[str, np.ndarray]]:
  """Reads a GPT-2 or Llama model from a Hugging Face folder.

  Args:
    folder: holds `config.json` and `model.safetensors`, or shards of it with
      `model.safetensors.index.json`. Tensors are F16, BF16, F32 or F64.
    dtype: float type of the result.

  Returns:
    The config, and weight -> array in the stored shapes of `weights.py`.

  Raises:
    ValueError: if a file is missing, damaged or unsupported, or if config and
      weights disagree.
  """
  folder = pathlib.Path(folder)
  fields = _Fields(folder / "config.json")
  architectures = fields.get("architectures", list, [])
  names = [str(name) for name in architectures]
  check(
    len(names) == 1 and names[0] in _FAMILIES,
    f"{fields.path}: architectures",
    ", ".join(names) or "none",
    "one of " + ", ".join(_FAMILIES),
    "use a model of a supported architecture",
  )
  found = tensor_files.catalogue(folder)
  config, layout = _FAMILIES[names[0]](fields, len(found))
  stored = {name.removeprefix("transformer."): name for name in found}
  check(
    len(stored) == len(found),
    f"{folder}: tensors",
    "names both with and without the prefix 'transformer.'",
    "one of the two",
    "use an undamaged checkpoint",
  )
  for name in list(stored):
    unused = config.tied and name == "lm_head.weight"
    if unused or _BUFFERS.fullmatch(name):
      del stored[name]
  shapes = {short: found[name].shape for short, name in stored.items()}
  layouts.check_layout(layout, shapes, str(folder))
  short = {name: short for short, name in stored.items()}
  tensors = tensor_files.read(found, short)
  renamed = ((short[name], array) for name, array in tensors)
  return config, layouts.assemble(config, layout, renamed, np.dtype(dtype))


class _Fields:
  """The fields of a config.json, with their types checked."""

  def __init__(self, path: pathlib.Path):
    self.path = path
    self.content = tensor_files.read_json(path)

  def get(self, name: str, kind: type, default: Any = _REQUIRED) -> Any:
    """A field; null and absent are the same, as in transformers."""
    value = self.content.get(name)
    if value is None and default is not _REQUIRED:
      return default
    right = type(value) is kind or (kind is float and type(value) is int)
    if kind in (int, float):
      right = right and 0 < value < _LARGEST
    check(
      right,
      f"{self.path}: {name}",
      repr(value),
      f"a positive {kind.__name__}" if kind in (int, float) else kind.__name__,
      "correct the config",
    )
    return kind(value)

  def require(self, name: str, value: Any) -> None:
    """Fails unless a field that changes the forward is absent or `value`."""
    check(
      self.content.get(name, value) in (value, None),
      f"{self.path}: {name}",
      repr(self.content.get(name)),
      repr(value),
      "this variant of the architecture is not supported",
    )


def _gpt2(fields, n_tensors):
  fields.require("scale_attn_weights", True)
  fields.require("scale_attn_by_inverse_layer_idx", False)
  fields.require("add_cross_attention", False)
  n_layers = fields.get("n_layer", int)
  layouts.check_layers(n_layers, n_tensors, str(fields.path))
  activation = fields.get("activation_function", str, "gelu_new")
  check_choice(
    f"{fields.path}: activation_function", activation, GPT2_ACTIVATIONS
  )
  d_model, n_heads = fields.get("n_embd", int), fields.get("n_head", int)
  check(
    d_model % n_heads == 0,
    f"{fields.path}: n_embd",
    d_model,
    f"a multiple of n_head={n_heads}",
    "correct the config",
  )
  config = ModelConfig(
    n_layers=n_layers,
    n_heads=n_heads,
    d_model=d_model,
    d_head=d_model // n_heads,
    d_mlp=fields.get("n_inner", int, 4 * d_model),
    d_vocab=fields.get("vocab_size", int),
    n_ctx=fields.get("n_positions", int),
    norm_eps=fields.get("layer_norm_epsilon", float, 1e-5),
    mlp=GPT2_ACTIVATIONS[activation],
    tied=fields.get("tie_word_embeddings", bool, True),
  )
  return config, layouts.gpt2(config)


def _llama(fields, n_tensors):
  fields.require("hidden_act", "silu")
  fields.require("mlp_bias", False)
  n_layers = fields.get("num_hidden_layers", int)
  layouts.check_layers(n_layers, n_tensors, str(fields.path))
  n_heads = fields.get("num_attention_heads", int)
  d_model = fields.get("hidden_size", int)
  bias = fields.get("attention_bias", bool, False)
  config = ModelConfig(
    n_layers=n_layers,
    n_heads=n_heads,
    n_kv_heads=fields.get("num_key_value_heads", int, n_heads),
    d_model=d_model,
    d_head=fields.get("head_dim", int, d_model // n_heads),
    d_mlp=fields.get("intermediate_size", int),
    d_vocab=fields.get("vocab_size", int),
    n_ctx=fields.get("max_position_embeddings", int, 2048),
    norm="rmsnorm",
    norm_eps=fields.get("rms_norm_eps", float, 1e-6),
    positions="rotary",
    rotary_theta=_rotary_theta(fields),
    mlp="swiglu",
    qkv_bias=bias,
    out_bias=bias,
    mlp_bias=False,
    tied=fields.get("tie_word_embeddings", bool, False),
  )
  return config, layouts.llama(config, LLAMA_NAMES)


def _rotary_theta(fields):
  """The base of the rotary angles; scaled angles are refused by name."""
  theta = fields.get("rope_theta", float, 10_000.0)
  for name in ("rope_scaling", "rope_parameters"):
    rope = fields.get(name, dict, {})
    kind = rope.get("rope_type", rope.get("type", "default"))
    check(
      kind in ("default", "none", None)
      and rope.get("partial_rotary_factor", 1) == 1,
      f"{fields.path}: {name}",
      repr(kind if kind != "default" else rope),
      "'default', whole-head rotary angles without scaling",
      "use a model with unscaled rotary positions",
    )
    theta = rope.get("rope_theta", theta)
  check(
    type(theta) in (int, float) and 0 < theta < _LARGEST,
    f"{fields.path}: rope_theta",
    repr(theta),
    "a positive float",
    "correct the config",
  )
  return float(theta)


_FAMILIES = {"GPT2LMHeadModel": _gpt2, "LlamaForCausalLM": _llama}
