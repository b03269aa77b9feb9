"""Which tensor of a checkpoint is which weight? One table per public layout.

A layout says, for every tensor that a file must hold, its shape there and
what becomes of it. Files are compared with it before anything is read, so
that a checkpoint of the wrong size costs no memory.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from headjax.checks import check
from headjax.models.config import ModelConfig
from headjax.models.weights import shapes

Convert = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Source:
  """What one tensor of a checkpoint holds.

  Attributes:
    shape: as stored in the checkpoint.
    targets: weight -> how the tensor becomes that weight (of one layer).
    layer: which layer, or None for a weight without a layer axis.
  """

  shape: tuple[int, ...]
  targets: Mapping[str, Convert]
  layer: int | None = None


Layout = dict[str, Source]


def check_layout(
  layout: Layout, found: Mapping[str, tuple[int, ...]], source: str
) -> None:
  """Fails unless a checkpoint holds exactly the tensors of a layout.

  Args:
    layout: the tensors that belong to the config.
    found: name -> shape of the tensors that are there.
    source: the folder or file, for the message.

  Raises:
    ValueError: a tensor is missing, unknown or of the wrong shape; the
      message has its name, what was got and what was expected.
  """
  for name in sorted(layout.keys() | found.keys()):
    got = f"shape {found[name]}" if name in found else "no tensor"
    expected = f"shape {layout[name].shape}" if name in layout else "none"
    check(
      got == expected,
      f"{source}: tensor {name}",
      got,
      expected + " for this config",
      "check that the config belongs to the weights",
    )


def assemble(
  config: ModelConfig,
  layout: Layout,
  tensors: Iterable[tuple[str, np.ndarray]],
  dtype: np.dtype,
) -> dict[str, np.ndarray]:
  """Fills the stacked weights from the tensors of a checkpoint, one by one.

  Args:
    config: the architecture.
    layout: the layout that the tensors were checked against.
    tensors: pairs of name and array, read as they are asked for.
    dtype: of the result. A value too large for it becomes infinite.

  Returns:
    weight -> array in the stored shape of `weights.shapes`.
  """
  weights = {
    name: np.empty(shape, dtype) for name, shape in shapes(config).items()
  }
  for name, array in tensors:
    source = layout[name]
    for weight, convert in source.targets.items():
      whole = weights[weight]
      target = whole if source.layer is None else whole[source.layer]
      with np.errstate(over="ignore", invalid="ignore"):
        target[...] = convert(array)
  return weights


def check_layers(n_layers: int, n_tensors: int, source: str) -> None:
  """Fails if a config claims more layers than a file has tensors.

  A layout has entries for every layer, so this bounds its size by the file's.
  """
  check(
    n_layers <= n_tensors,
    f"{source}: number of layers",
    n_layers,
    f"at most {n_tensors}, the number of tensors",
    "check that the config belongs to the weights",
  )


def gpt2(config: ModelConfig) -> Layout:
  """The layout of GPT-2: matrices are `[in, out]`, q, k and v are fused."""
  d, heads, d_head = config.d_model, config.n_heads, config.d_head

  def part(index, array):
    piece = array[..., index * d : (index + 1) * d]
    return piece.reshape(*array.shape[:-1], heads, d_head)

  def fused(kind):
    return {
      f"{kind}_{letter}": functools.partial(part, index)
      for index, letter in enumerate("QKV")
    }

  def block(layer):
    stored = {
      "ln_1.weight": ((d,), {"attn_norm_gain": _same}),
      "ln_1.bias": ((d,), {"attn_norm_bias": _same}),
      "attn.c_attn.weight": ((d, 3 * d), fused("W")),
      "attn.c_attn.bias": ((3 * d,), fused("b")),
      "attn.c_proj.weight": (
        (d, d),
        {"W_O": lambda array: array.reshape(heads, d_head, d)},
      ),
      "attn.c_proj.bias": ((d,), {"b_O": _same}),
      "ln_2.weight": ((d,), {"mlp_norm_gain": _same}),
      "ln_2.bias": ((d,), {"mlp_norm_bias": _same}),
      "mlp.c_fc.weight": ((d, config.d_mlp), {"W_in": _same}),
      "mlp.c_fc.bias": ((config.d_mlp,), {"b_in": _same}),
      "mlp.c_proj.weight": ((config.d_mlp, d), {"W_out": _same}),
      "mlp.c_proj.bias": ((d,), {"b_out": _same}),
    }
    return {
      f"h.{layer}.{name}": Source(shape, targets, layer)
      for name, (shape, targets) in stored.items()
    }

  layout = {
    "wte.weight": Source((config.d_vocab, d), {"W_E": _same}),
    "wpe.weight": Source((config.n_ctx, d), {"W_pos": _same}),
    "ln_f.weight": Source((d,), {"final_norm_gain": _same}),
    "ln_f.bias": Source((d,), {"final_norm_bias": _same}),
  }
  for layer in range(config.n_layers):
    layout |= block(layer)
  if not config.tied:
    layout["lm_head.weight"] = Source(
      (config.d_vocab, d), {"W_U": np.transpose}
    )
  return layout


def llama(
  config: ModelConfig, names: Mapping[str, str], *, interleaved: bool = False
) -> Layout:
  """The layout of Llama: matrices are `[out, in]`, nothing is fused.

  Args:
    config: the architecture.
    names: weight -> name of its tensor, with `{}` for the layer.
    interleaved: whether the rows of q and k are ordered for rotary planes
      of neighbouring coordinates, and have to be put in half-rotation order.
  """
  layout = {}
  for weight, (shape, convert) in _llama_weights(config).items():
    if interleaved and weight in ("W_Q", "W_K", "b_Q", "b_K"):
      convert = functools.partial(_halves, config.d_head, convert)
    template = names[weight]
    if "{}" in template:
      for layer in range(config.n_layers):
        source = Source(shape, {weight: convert}, layer)
        layout[template.format(layer)] = source
    else:
      layout[template] = Source(shape, {weight: convert})
  return layout


def _llama_weights(config):
  """Weight -> (shape in the file, conversion), for what the config has."""
  d, d_mlp, d_head = config.d_model, config.d_mlp, config.d_head
  n_q, n_kv = config.n_heads, config.n_kv_heads

  def heads(array):
    return array.T.reshape(d, -1, d_head)

  def bias(array):
    return array.reshape(-1, d_head)

  found = {
    "W_E": ((config.d_vocab, d), _same),
    "attn_norm_gain": ((d,), _same),
    "W_Q": ((n_q * d_head, d), heads),
    "W_K": ((n_kv * d_head, d), heads),
    "W_V": ((n_kv * d_head, d), heads),
    "W_O": ((d, n_q * d_head), lambda a: a.T.reshape(n_q, d_head, d)),
    "mlp_norm_gain": ((d,), _same),
    "W_in": ((d_mlp, d), np.transpose),
    "W_gate": ((d_mlp, d), np.transpose),
    "W_out": ((d, d_mlp), np.transpose),
    "final_norm_gain": ((d,), _same),
  }
  if config.qkv_bias:
    found["b_Q"] = ((n_q * d_head,), bias)
    found["b_K"] = found["b_V"] = ((n_kv * d_head,), bias)
  if config.out_bias:
    found["b_O"] = ((d,), _same)
  if not config.tied:
    found["W_U"] = ((config.d_vocab, d), np.transpose)
  return found


def _same(array):
  return array


def _halves(d_head, convert, array):
  """Undoes the pairing of rotary planes within each head, then converts."""
  pairs = array.reshape(-1, d_head // 2, 2, *array.shape[1:])
  return convert(pairs.swapaxes(1, 2).reshape(array.shape))
