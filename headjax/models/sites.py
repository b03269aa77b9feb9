"""Where can a forward pass be read and changed, and how is a change written?

A site is a named activation of a block. `Activations` has one field per site
for reading; `Edits` has the same fields for writing: each a tuple of edits,
applied in order. Every leaf of an edit has a leading `layer` axis of length
`n_layers` and otherwise broadcasts against the site, so *which* sites are
edited is static while *which* layer, position and head is data. A whole sweep
over heads is therefore one trace.

Shapes, without the leading `layer` axis:

  resid_pre, attn_out, resid_mid, mlp_out, resid_post  [batch, pos, d_model]
  q, k, v        [batch, pos, head, d_head]; after bias, before rotary, and
                 per *query* head, also with grouped K/V heads
  scores         [batch, head, query_pos, key_pos], scaled, before the mask
  pattern        [batch, head, query_pos, key_pos]
  z              [batch, pos, head, d_head], before W_O
"""

import dataclasses
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

from headjax.checks import check, fail
from headjax.models.config import ModelConfig

SITES = (
    "resid_pre", "q", "k", "v", "scores", "pattern", "z", "attn_out",
    "resid_mid", "mlp_out", "resid_post",
)  # fmt: skip


@flax.struct.dataclass
class Edit:
  """Replaces `x` by `(1 - gate) * x + gate * value`.

  The blend is bit-exact at gates 0 and 1 and differentiable in between. A NaN
  in `value` would leak through a closed gate: the builders check for it.

  Attributes:
    gate: `[layer, ...]`, broadcasts against the site; usually in [0, 1].
    value: `[layer, ...]`, broadcasts against the site.
  """

  gate: jax.Array
  value: jax.Array

  def __call__(self, x: jax.Array) -> jax.Array:
    # Cast, lest a float64 patch change the type that the scan carries.
    gate, value = self.gate.astype(x.dtype), self.value.astype(x.dtype)
    return (1 - gate) * x + gate * value


@flax.struct.dataclass
class LinearEdit:
  """Replaces `x` by `x + gate * (x @ matrix)`.

  With `matrix = -Q @ Q.T` and gate 1 this projects a subspace out.

  Attributes:
    gate: `[layer, ...]`, broadcasts against the site.
    matrix: `[layer, ..., d, d]`, acts on the site's last axis; the axes before
      it broadcast against the site's, for instance `[layer, head, d, d]`.
  """

  gate: jax.Array
  matrix: jax.Array

  def __call__(self, x: jax.Array) -> jax.Array:
    gate, matrix = self.gate.astype(x.dtype), self.matrix.astype(x.dtype)
    missing = x.ndim + 1 - matrix.ndim
    matrix = matrix.reshape((1,) * missing + matrix.shape)
    return x + gate * (x[..., None, :] @ matrix)[..., 0, :]


@flax.struct.dataclass
class Edits:
  """What to change in a forward pass; `Edits()` changes nothing.

  Every field is a tuple of `Edit` or `LinearEdit`, applied in order.
  """

  resid_pre: tuple[Any, ...] = ()
  q: tuple[Any, ...] = ()
  k: tuple[Any, ...] = ()
  v: tuple[Any, ...] = ()
  scores: tuple[Any, ...] = ()
  pattern: tuple[Any, ...] = ()
  z: tuple[Any, ...] = ()
  attn_out: tuple[Any, ...] = ()
  resid_mid: tuple[Any, ...] = ()
  mlp_out: tuple[Any, ...] = ()
  resid_post: tuple[Any, ...] = ()


@flax.struct.dataclass
class Activations:
  """What a forward pass computed, one field per site, stacked over layers.

  Inside `jit`, the fields that nobody reads cost nothing.
  """

  resid_pre: jax.Array
  q: jax.Array
  k: jax.Array
  v: jax.Array
  scores: jax.Array
  pattern: jax.Array
  z: jax.Array
  attn_out: jax.Array
  resid_mid: jax.Array
  mlp_out: jax.Array
  resid_post: jax.Array


def apply(edits: tuple[Any, ...], x: jax.Array) -> jax.Array:
  """Applies a site's edits, in order, to its activation."""
  for edit in edits:
    edited = edit(x)
    if edited.shape != x.shape:
      fail(
        "edit",
        f"leaves that broadcast the site to {edited.shape}",
        f"leaves that broadcast against {x.shape}",
        "give gate and value the site's axes (after the layer axis)",
      )
    x = edited
  return x


def check_edits(config: ModelConfig, edits: Edits) -> None:
  """Refuses edits that the forward would never reach or could not scan."""
  check(
    not (edits.mlp_out and config.mlp == "none"),
    "edits.mlp_out",
    "an edit",
    "none in a model without an MLP",
    "edit attn_out or resid_post instead",
  )
  for field in dataclasses.fields(edits):
    for leaf in jax.tree.leaves(getattr(edits, field.name)):
      shape = jnp.shape(leaf)
      check(
        len(shape) > 0 and shape[0] == config.n_layers,
        f"edits.{field.name}",
        f"a leaf of shape {shape}",
        f"a leading layer axis of length {config.n_layers}",
        "stack gate and value over layers",
      )
