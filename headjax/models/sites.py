"""Where can a forward pass be read and changed, and how is a change written?

A site is a named activation of a block. `Activations` has one field per site
for reading; `Edits` has the same fields for writing: each a tuple of edits,
applied in order. Every leaf of an edit has a leading `layer` axis of length
`n_layers` and otherwise broadcasts against the site, so *which* sites are
edited is static while *which* layer, position and head is data. A whole sweep
over heads is therefore one trace.

Shapes, without the leading `layer` axis:

  resid_pre, attn_out, resid_mid, mlp_out, resid_post  [batch, pos, d_model]
  q, k, v        [batch, pos, head, d_head]; after bias, norm and clipping,
                 before rotary, and per *query* head, also with grouped K/V
                 heads
  scores         [batch, head, query_pos, key_pos], scaled and capped, before
                 the mask
  pattern        [batch, head, query_pos, key_pos]
  z              [batch, pos, head, d_head], before W_O
  router_logits  [batch, pos, expert], in at least float32
  router_weights [batch, pos, expert], 0 for experts that are not chosen

attn_out and mlp_out are what the stream gains, so that resid_mid = resid_pre +
attn_out: where a model norms the outputs of its halves (Gemma-2, OLMo-2), they
are after that norm, and what a single head writes through W_O is only a part
of what goes into it. Where the stream itself is normed after each half,
resid_mid and resid_post are after that norm, and not these sums. A block whose
halves are parallel has no resid_mid, and one without experts no router:
`available` lists what a model has.

In screening models q and k are d_key wide, q, k and v are read before they are
brought to unit length, scores are the similarities in [-1, 1], before trim and
softmask, the pattern is the product of these two, whose rows need not sum to
1, and z is after the gate and the head's scale.
"""

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

from headjax.checks import check
from headjax.models.config import ModelConfig
from headjax.outline import of_fields, table_of_fields

SITES = (
    "resid_pre", "q", "k", "v", "scores", "pattern", "z", "attn_out",
    "resid_mid", "router_logits", "router_weights", "mlp_out", "resid_post",
)  # fmt: skip


@flax.struct.dataclass
class Edit:
  """Replaces `x` by `(1 - gate) * x + gate * value`.

  The blend is bit-exact at gates 0 and 1 and differentiable in between. A NaN
  in `value` would leak through a closed gate: the builders check for it.

  Attributes:
    gate: `[layer, ...]`, broadcasts against the site; usually in [0, 1].
    value: `[layer, ...]`, broadcasts against the site.

  Examples:
    What it does to a site in one layer, without the layer axis:

    >>> halfway = Edit(gate=jnp.array([0.0, 0.5, 1.0]), value=jnp.full(3, 10.0))
    >>> halfway(jnp.array([2.0, 2.0, 2.0])).tolist()
    [2.0, 6.0, 10.0]
  """

  gate: jax.Array
  value: jax.Array

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def __call__(self, x: jax.Array) -> jax.Array:
    # Cast, lest a float64 patch change the type that the scan carries.
    gate, value = self.gate.astype(x.dtype), self.value.astype(x.dtype)
    return (1 - gate) * x + gate * value


@flax.struct.dataclass
class Shift(Edit):
  """Replaces `x` by `x + gate * value`: a gate is a strength of any size.

  Where an `Edit` is expected, this is one.
  """

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def __call__(self, x: jax.Array) -> jax.Array:
    return x + self.gate.astype(x.dtype) * self.value.astype(x.dtype)


@flax.struct.dataclass
class LinearEdit:
  """Replaces `x` by `x + gate * (x @ matrix)`.

  With `matrix = -Q @ Q.T` and gate 1 this projects a subspace out.

  Attributes:
    gate: `[layer, ...]`, broadcasts against the site.
    matrix: `[layer, ..., d, d]`, acts on the site's last axis; the axes before
      it broadcast against the site's, for instance `[layer, head, d, d]`.

  Examples:
    Takes the first coordinate out, in one layer:

    >>> out = LinearEdit(jnp.ones((1, 1)), -jnp.diag(jnp.array([1.0, 0.0])))
    >>> out(jnp.array([[3.0, 4.0]])).tolist()
    [[0.0, 4.0]]
  """

  gate: jax.Array
  matrix: jax.Array

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def __call__(self, x: jax.Array) -> jax.Array:
    gate, matrix = self.gate.astype(x.dtype), self.matrix.astype(x.dtype)
    if matrix.ndim == 2:  # one for all rows: no copy of it for each of them
      return x + gate * (x @ matrix)
    missing = x.ndim + 1 - matrix.ndim
    matrix = matrix.reshape((1,) * missing + matrix.shape)
    return x + gate * (x[..., None, :] @ matrix)[..., 0, :]


@flax.struct.dataclass
class Edits:
  """What to change in a forward pass; `Edits()` changes nothing.

  Every field is a tuple of `Edit`, `Shift` or `LinearEdit`, applied in order.

  Attributes:
    resid_pre: the stream before a block.
    q: queries.
    k: keys.
    v: values.
    scores: of attention, before the mask.
    pattern: of attention.
    z: outputs of the heads, before W_O.
    attn_out: what attention adds to the stream.
    resid_mid: the stream between the two halves of a block.
    router_logits: of experts.
    router_weights: of experts.
    mlp_out: what the MLP adds to the stream.
    resid_post: the stream after a block.

  Examples:
    Head 2 of layer 1 is silent, in a model of two layers with three heads:

    >>> gate = jnp.zeros((2, 1, 1, 3, 1)).at[1, :, :, 2].set(1.0)
    >>> Edits(z=(Edit(gate, jnp.zeros((2, 1, 1, 1, 1))),))
    Edits(z=(Edit(gate=float32[2, 1, 1, 3, 1], value=float32[2, 1, 1, 1, 1])))
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
  router_logits: tuple[Any, ...] = ()
  router_weights: tuple[Any, ...] = ()
  mlp_out: tuple[Any, ...] = ()
  resid_post: tuple[Any, ...] = ()

  __repr__ = of_fields
  _repr_html_ = table_of_fields


@flax.struct.dataclass
class Activations:
  """What a forward pass computed, one field per site, stacked over layers.

  Inside `jit`, the fields that nobody reads cost nothing. Sites that the model
  does not have are None, and so are `scores` and `pattern` of fused attention.

  Attributes:
    resid_pre: `[layer, batch, pos, d_model]`, the stream before a block.
    q: `[layer, batch, pos, head, d_head]`, queries.
    k: `[layer, batch, pos, head, d_head]`, keys of each query head.
    v: `[layer, batch, pos, head, d_head]`, values of each query head.
    scores: `[layer, batch, head, query_pos, key_pos]`, before the mask.
    pattern: `[layer, batch, head, query_pos, key_pos]`, shares of attention.
    z: `[layer, batch, pos, head, d_head]`, before W_O.
    attn_out: `[layer, batch, pos, d_model]`, what attention adds.
    resid_mid: `[layer, batch, pos, d_model]`, between the halves of a block.
    router_logits: `[layer, batch, pos, expert]`.
    router_weights: `[layer, batch, pos, expert]`.
    mlp_out: `[layer, batch, pos, d_model]`, what the MLP adds.
    resid_post: `[layer, batch, pos, d_model]`, the stream after a block.
  """

  resid_pre: jax.Array
  q: jax.Array
  k: jax.Array
  v: jax.Array
  scores: jax.Array | None
  pattern: jax.Array | None
  z: jax.Array
  attn_out: jax.Array
  resid_mid: jax.Array | None
  router_logits: jax.Array | None
  router_weights: jax.Array | None
  mlp_out: jax.Array
  resid_post: jax.Array

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def apply(edits: tuple[Any, ...], x: jax.Array) -> jax.Array:
  """Applies a site's edits, in order, to its activation."""
  for edit in edits:
    _check_broadcast(edit, x.shape)
    x = edit(x)
  return x


def _check_broadcast(edit: Edit | LinearEdit, shape: tuple[int, ...]) -> None:
  """Refuses an edit that would change the shape of its site."""
  found = {"gate": edit.gate.shape}
  if isinstance(edit, Edit):
    found["value"] = edit.value.shape
  else:
    *lead, rows, columns = edit.matrix.shape
    found["matrix"] = (*lead, rows if rows == columns else -1)
  for name, given in found.items():
    padded = (1,) * (len(shape) - len(given)) + given
    fits = len(padded) == len(shape) and all(
      n in (1, wanted) for n, wanted in zip(padded, shape, strict=True)
    )
    check(
      fits and (name != "matrix" or given[-1] == shape[-1]),
      f"edit's {name}",
      f"shape {getattr(edit, name).shape} in a layer",
      f"one that broadcasts against the site's {shape}",
      "give it the site's axes after the layer axis",
    )


def available(config: ModelConfig, *, explicit: bool = True) -> dict[str, str]:
  """Which sites a model has, and why it lacks the others.

  Args:
    config: of the model.
    explicit: whether attention shows its scores and pattern.

  Returns:
    site -> why there is none; "" for a site that there is.
  """
  lacking = {}
  if not explicit:
    why = "with attention='fused', where nothing in between exists"
    lacking |= {"scores": why, "pattern": why}
  if config.mlp == "none":
    lacking["mlp_out"] = "in a model without an MLP"
  if config.parallel:
    lacking["resid_mid"] = "in a block whose halves are parallel"
  if not config.n_experts:
    why = "in a model without experts"
    lacking |= {"router_logits": why, "router_weights": why}
  return {site: lacking.get(site, "") for site in SITES}


def check_edits(
  config: ModelConfig, edits: Edits, *, explicit: bool = True
) -> None:
  """Refuses edits that the forward would never reach or could not scan.

  Args:
    config: of the model.
    edits: what to change.
    explicit: whether attention shows its scores and pattern.

  Raises:
    ValueError: naming the site.
  """
  there = available(config, explicit=explicit)
  others = ", ".join(site for site, why in there.items() if not why)
  for site, why in there.items():
    check(
      not (why and getattr(edits, site)),
      f"edits.{site}",
      "an edit",
      f"none {why}",
      f"edit one of {others}",
    )
    for edit in getattr(edits, site):
      _check_rank(config, site, edit)


def _check_rank(config: ModelConfig, site: str, edit: Edit | LinearEdit):
  """Refuses leaves whose axes would be taken for others."""
  full = 5 if site in ("q", "k", "v", "scores", "pattern", "z") else 4
  ranks = {"gate": (1, full)}
  if isinstance(edit, Edit):
    ranks["value"] = (1, full)
  else:
    # [layer, d, d], or with the axis before the site's last: [layer, head, ...]
    ranks["matrix"] = (3, 4) if full == 5 else (3,)
  for name, allowed in ranks.items():
    shape = jnp.shape(getattr(edit, name))
    check(
      len(shape) in allowed and shape[0] == config.n_layers,
      f"{name} of edits.{site}",
      f"shape {shape}",
      f"{' or '.join(map(str, allowed))} axes, the first of them"
      f" {config.n_layers} layers",
      "stack it over layers and give every axis of the site, 1 to broadcast",
    )
