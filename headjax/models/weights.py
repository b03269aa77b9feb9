"""Which array is which weight? The only file that knows raw parameter names.

Checkpoint readers hand over arrays under the field's names (`pack`), analyses
ask for them per query head (`W_Q(params)` and its like); nobody else spells a
path into the parameter tree.

Stored shapes, with a leading `layer` axis on everything inside a block:

  W_E        [vocab, d_model]              W_pos    [n_ctx, d_model]
  W_Q        [layer, d_model, head, d_head]; of screening models, like W_K,
             with d_key in place of d_head
  W_K, W_V   [layer, d_model, kv_head, d_head]; of a block reader, like W_Q,
             [layer, head, d_head, d_head]
  W_O        [layer, head, d_head, d_model], absent when the write is frozen
  b_Q        [layer, head, d_head]         b_K, b_V [layer, kv_head, d_head]
  b_O        [layer, d_model]
  q_norm_gain [layer, head * d_head]       k_norm_gain [layer, kv_head * d_head]
  W_in, W_gate [layer, d_model, d_mlp]     W_out    [layer, d_mlp, d_model];
             of experts, with an expert axis after the layer's
  W_router   [layer, d_model, expert]
  b_in, b_gate [layer, d_mlp]              b_out    [layer, d_model]
  attn_norm_gain, attn_norm_bias, mlp_norm_gain, mlp_norm_bias [layer, d_model]
  attn_out_norm_gain, mlp_out_norm_gain, and their biases, [layer, d_model];
             where the stream itself is normed, those of the sums
  block_norm_gain, block_norm_bias [layer, head, d_head], of block readers
  adapter_in [layer, d_model, width]       adapter_out [layer, width, kv_width]
  final_norm_gain, final_norm_bias [d_model]
  W_U        [d_model, vocab], absent when tied to W_E

Only screening models have W_G [layer, d_model, head, d_head] and the scalars
s_w, s_r, s_O [layer, head] and s_E, s_F [].
"""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check, fail
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder

PATHS = {
  "W_E": ("embed", "W_E"),
  "W_pos": ("embed", "W_pos"),
  "attn_norm_gain": ("blocks", "reader", "norm", "gain"),
  "attn_norm_bias": ("blocks", "reader", "norm", "bias"),
  "W_Q": ("blocks", "attention", "W_Q"),
  "W_K": ("blocks", "attention", "W_K"),
  "W_V": ("blocks", "attention", "W_V"),
  "W_G": ("blocks", "attention", "W_G"),
  "W_O": ("blocks", "attention", "W_O"),
  "s_w": ("blocks", "attention", "s_w"),
  "s_r": ("blocks", "attention", "s_r"),
  "s_O": ("blocks", "attention", "s_O"),
  "b_Q": ("blocks", "attention", "b_Q"),
  "b_K": ("blocks", "attention", "b_K"),
  "b_V": ("blocks", "attention", "b_V"),
  "b_O": ("blocks", "attention", "b_O"),
  "q_norm_gain": ("blocks", "attention", "q_norm", "gain"),
  "q_norm_bias": ("blocks", "attention", "q_norm", "bias"),
  "k_norm_gain": ("blocks", "attention", "k_norm", "gain"),
  "k_norm_bias": ("blocks", "attention", "k_norm", "bias"),
  "attn_out_norm_gain": ("blocks", "attn_out_norm", "gain"),
  "attn_out_norm_bias": ("blocks", "attn_out_norm", "bias"),
  "block_norm_gain": ("blocks", "reader", "block_norm", "gain"),
  "block_norm_bias": ("blocks", "reader", "block_norm", "bias"),
  "adapter_in": ("blocks", "attention", "adapter_in"),
  "adapter_out": ("blocks", "attention", "adapter_out"),
  "mlp_norm_gain": ("blocks", "mlp_norm", "gain"),
  "mlp_norm_bias": ("blocks", "mlp_norm", "bias"),
  "W_router": ("blocks", "mlp", "W_router"),
  "W_in": ("blocks", "mlp", "W_in"),
  "W_gate": ("blocks", "mlp", "W_gate"),
  "W_out": ("blocks", "mlp", "W_out"),
  "b_in": ("blocks", "mlp", "b_in"),
  "b_gate": ("blocks", "mlp", "b_gate"),
  "b_out": ("blocks", "mlp", "b_out"),
  "mlp_out_norm_gain": ("blocks", "mlp_out_norm", "gain"),
  "mlp_out_norm_bias": ("blocks", "mlp_out_norm", "bias"),
  "final_norm_gain": ("final_norm", "gain"),
  "final_norm_bias": ("final_norm", "bias"),
  "s_E": ("embed", "s_E"),
  "s_F": ("embed", "s_F"),
  "W_U": ("unembed", "W_U"),
}


@functools.cache
def shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
  """The stored shape of every weight that a model of this config has."""
  tree = jax.eval_shape(
    Decoder(config).init, jax.random.key(0), jnp.zeros((1, 1), jnp.int32)
  )["params"]
  found = {}
  for name, path in PATHS.items():
    leaf = _lookup(tree, path)
    if leaf is not None:
      found[name] = leaf.shape
  missed = len(jax.tree.leaves(tree)) - len(found)
  assert not missed, f"PATHS lacks {missed} leaves of the parameter tree"
  return found


def pack(
  config: ModelConfig, weights: dict[str, np.ndarray], source: str
) -> dict[str, Any]:
  """Builds the parameter tree from weights under the field's names.

  Args:
    config: the architecture that the weights must fit.
    weights: name -> array in the stored shape (see the module's docstring).
    source: where the weights come from, for the error messages.

  Returns:
    The nested parameter dict for `Decoder(config)`; arrays are not copied.

  Raises:
    ValueError: a weight is missing, unknown, of the wrong shape, or not
      finite; the message names it.
  """
  expected = shapes(config)
  for name in sorted(expected.keys() ^ weights.keys()):
    fail(
      f"{source}: {name}",
      "no tensor" if name in expected else "a tensor",
      "one" if name in expected else "none for this architecture",
      "check that the config belongs to the weights",
    )
  for name, array in weights.items():
    check(
      array.shape == expected[name],
      f"{source}: {name}",
      f"shape {array.shape}",
      f"shape {expected[name]}",
      "check that the config belongs to the weights",
    )
    check_finite(array, f"{source}: {name}")
  return nested(weights)


def nested(leaves: Mapping[str, Any]) -> dict[str, Any]:
  """The parameter tree whose leaves are given by their weights' names."""
  params: dict[str, Any] = {}
  for name, leaf in leaves.items():
    *folders, last = PATHS[name]
    node = params
    for folder in folders:
      node = node.setdefault(folder, {})
    node[last] = leaf
  return params


def check_finite(array: np.ndarray, field: str) -> None:
  """Fails on the first NaN or infinity, saying how many there are.

  Args:
    array: of any shape.
    field: what an error calls it.

  Raises:
    ValueError: a value is not finite.
  """
  bad = array.size - int(np.isfinite(array).sum())
  check(
    not bad,
    field,
    f"{bad} of {array.size} values that are NaN or infinite",
    "finite weights",
    "load an undamaged checkpoint",
  )


def _lookup(tree, path):
  for key in path:
    if key not in tree:
      return None
    tree = tree[key]
  return tree


def blocks(params) -> Any:
  """The parameters of all blocks; every leaf has a leading layer axis."""
  return params["blocks"]


def get(params, name: str) -> jax.Array:
  """One weight by its field-standard name.

  Args:
    params: of the model.
    name: for instance `W_Q`.

  Returns:
    The array in its stored shape, `[layer, ...]` for those of blocks.

  Raises:
    ValueError: the model has no such weight.
  """
  array = _lookup(params, PATHS[name])
  if array is None:
    fail("weight", name, "a weight that this model has", "check the config")
  return array


def norm_gain(params, config: ModelConfig, name: str) -> jax.Array | None:
  """What a norm multiplies by; None if it is bare or there is none.

  Args:
    params: of the model.
    config: of the model.
    name: of the gain, for instance `attn_norm_gain`.

  Returns:
    `[..., d_model]`, with a leading layer axis for those of blocks.
  """
  gain = _lookup(params, PATHS[name])
  if gain is None or config.norm != "rmsnorm_offset":
    return gain
  return 1 + gain


def per_query_head(params, config: ModelConfig, name: str) -> jax.Array:
  """A head's matrices, whatever the design, with K/V heads repeated.

  A frozen write is its dense matrix; a block reader's map is that from the
  whole stream (its block, then the map), without the norm in between. Where
  the model norms the attention output (`config.norms_output`), what a head
  writes through W_O is additive only before that norm, which mixes the heads.
  Likewise q and k of all heads share a scale where there is a q/k norm.

  Args:
    params: of the model.
    config: of the model.
    name: `W_Q`, `W_K`, `W_V`, `W_O` or, of a screening model, `W_G`.

  Returns:
    `[layer, head, d_model, d_head]`; `W_O` as `[layer, head, d_head, d_model]`.
  """
  if name == "W_O":
    if config.write.frozen:
      return jnp.asarray(config.write.dense(config.sizes), _dtype(params))
    return get(params, name)
  array = get(params, name)
  if name[-1] in config.read.blocks:
    blocks = jnp.asarray(config.read.dense(config.sizes), array.dtype)
    return jnp.einsum("lhde,lhef->lhdf", blocks, array)
  array = jnp.moveaxis(array, 1, 2)
  if name in ("W_K", "W_V"):
    array = jnp.repeat(array, config.group_size, axis=1)
  return array


def _dtype(params):
  return jax.tree.leaves(params)[0].dtype


def replaced(params, changes: Mapping[str, Any]) -> dict[str, Any]:
  """The parameter tree with some weights exchanged; nothing is changed.

  Args:
    params: of the model.
    changes: weight -> array in its stored shape.
  """
  for name, leaf in changes.items():
    params = _exchange(params, PATHS[name], leaf)
  return params


def _exchange(tree, path, leaf):
  key, *rest = path
  return {**tree, key: _exchange(tree[key], rest, leaf) if rest else leaf}
