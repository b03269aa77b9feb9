"""What must be kept of a run so that parts of it can be computed again?

A `Run` holds, for every layer, what enters and leaves the heads. From two of
them `alternative_z` gives the head outputs that an edit of any site inside the
heads would produce: all that a suffix sweep needs to know about the edit.
"""

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

from headjax.checks import check_choice
from headjax.models import weights
from headjax.models.block import Block, layer_statics
from headjax.models.decoder import Decoder, default_context, run
from headjax.models.softmax import KV, Context

HEAD_SITES = ("k", "q", "v", "z")


@flax.struct.dataclass
class Run:
  """A recorded forward pass; leading axis `layer` unless said otherwise.

  Attributes:
    resid_pre: `[layer, batch, pos, d_model]`.
    q, k: `[layer, batch, pos, head, d_key]`, before rotary.
    v: `[layer, batch, pos, head, d_head]`.
    z: `[layer, batch, pos, head, d_head]`.
    written: `[layer, batch, pos, d_model]`, the sum of the heads' writes,
      before a norm of the attention output.
    mlp_out: `[layer, batch, pos, d_model]`, what the MLP adds to the stream.
    resid: `[batch, pos, d_model]`, the final stream (no layer axis).
    context: positions and validity `[batch, pos]` (no layer axis).
  """

  resid_pre: jax.Array
  q: jax.Array
  k: jax.Array
  v: jax.Array
  z: jax.Array
  written: jax.Array
  mlp_out: jax.Array
  resid: jax.Array
  context: Context


def record(
  model: Decoder,
  params: Any,
  tokens: jax.Array,
  *,
  positions: jax.Array | None = None,
  key_valid: jax.Array | None = None,
) -> Run:
  """Runs the model unedited and keeps what the sweeps need.

  Inside `jit`, fields that nobody reads are not computed.
  """
  resid, acts = run(
    model, params, tokens, positions=positions, key_valid=key_valid
  )
  written = acts.attn_out
  if model.config.norms_output:
    written = _written(model, params, acts.z)
  return Run(
      acts.resid_pre, acts.q, acts.k, acts.v, acts.z, written, acts.mlp_out,
      resid, default_context(tokens, positions, key_valid),
  )  # fmt: skip


def _written(model: Decoder, params: Any, z: jax.Array) -> jax.Array:
  """What the heads of every layer write, from their outputs."""
  block = Block(model.config)

  def of_layer(params, statics, z):
    return block.apply({"params": params}, statics, z, method=Block.write)

  return jax.vmap(of_layer)(
    weights.blocks(params), layer_statics(model.config), z
  )


def cached_keys(model: Decoder, params: Any, clean: Run) -> KV:
  """The clean keys and values of all layers, ready to be attended to.

  Returns:
    A `KV` whose k and v have a leading layer axis, and whose context, the
    same for all layers, has none.
  """
  block = Block(model.config)

  def of_layer(params, k, v):
    kv = block.apply(
      {"params": params}, k, v, clean.context, method=Block.place
    )
    return kv.k, kv.v

  k, v = jax.vmap(of_layer)(weights.blocks(params), clean.k, clean.v)
  return KV(k, v, clean.context)


def replace_site(
  site: str, clean: Run, value: jax.Array, where: jax.Array
) -> Run:
  """The run with one site's activation replaced at some positions.

  Only the record is changed: nothing downstream is computed again.

  Args:
    site: "z", "q", "k" or "v".
    clean: the run.
    value: broadcasts against the site, `[layer, batch, pos, head, width]`.
    where: `[batch, pos]` bool, the positions to replace.
  """
  check_choice("site", site, HEAD_SITES)
  kept = getattr(clean, site)
  where = where[None, :, :, None, None]
  return clean.replace(**{site: jnp.where(where, value, kept)})


def alternative_z(
  model: Decoder, params: Any, site: str, clean: Run, other: Run
) -> jax.Array:
  """Head outputs if every head took its `site` from the other run.

  Each head is edited alone and upstream of it nothing has changed, so one
  pass over the recorded q, k, v answers for all heads and layers at once.
  With grouped K/V heads, k and v are those of one *query* head.

  Args:
    model: the `Decoder`.
    params: its parameters.
    site: "z", "q", "k" or "v".
    clean: the run that is edited.
    other: the run that the site's activation comes from.

  Returns:
    `[layer, batch, pos, head, d_head]`.
  """
  check_choice("site", site, HEAD_SITES)
  if site == "z":
    return other.z
  mixed = clean.replace(**{site: getattr(other, site)})
  block = Block(model.config)

  def of_layer(params, statics, resid_pre, q, k, v):
    arguments = (statics, resid_pre, q, k, v, clean.context)
    return block.apply({"params": params}, *arguments, method=Block.mix)

  return jax.vmap(of_layer)(
    weights.blocks(params),
    layer_statics(model.config),
    clean.resid_pre,
    mixed.q,
    mixed.k,
    mixed.v,
  )
