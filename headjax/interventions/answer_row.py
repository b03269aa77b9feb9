"""What does a change at the answer alone cost? The later layers of one row.

A change of a layer's attention at the answer position leaves all other rows of
a causal model as they are. So the answer's row goes on by itself and attends
to the clean keys and values of the rows before it; many changes, each along
one direction, are rows of one batch.
"""

import functools
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

from headjax.interventions.metrics import LogitDifference
from headjax.interventions.questions import Batch
from headjax.interventions.record import cached_keys, record
from headjax.models import weights
from headjax.models.block import Block, layer_statics
from headjax.models.compiling import fast_jit
from headjax.models.decoder import Decoder
from headjax.models.sites import Edit, Edits
from headjax.models.softmax import KV, Context


@flax.struct.dataclass
class Setting:
  """What all directions share, at the answer unless said otherwise.

  Attributes:
    resid_pre, written: `[batch, 1, d_model]`, clean, of the patched layer.
    amount: `[batch, n]`, by how much each direction changes.
    direction: `[n, d_model]`, what a change of 1 adds.
    k, v: `[layer, batch, pos, head, ...]`, clean, ready to be attended to.
    cached: `[batch, pos]`, where they stand, valid before the answer.
    context: `[batch, 1]`, where the answer stands.
  """

  resid_pre: jax.Array
  written: jax.Array
  amount: jax.Array
  direction: jax.Array
  k: jax.Array
  v: jax.Array
  cached: Context
  context: Context


@functools.partial(fast_jit, static_argnames=("model", "site"))
def prepare(
  model: Decoder, site: str, params: Any, batch: Batch, basis, layer
) -> Setting:
  """The setting of one layer; traceable.

  Args:
    model: the `Decoder`; static, causal.
    site: "attn_out" or "z"; static.
    params: its parameters.
    batch: of prompts.
    basis: `[head, d_head, d_head]`, the directions of z; None for "attn_out".
    layer: scalar int.
  """
  see = functools.partial(record, model, params, key_valid=batch.key_valid)
  clean, other = see(batch.clean), see(batch.reference)

  def here(x):
    index = batch.answer_pos.reshape(-1, *(1,) * (x.ndim - 2))
    return jnp.take_along_axis(x[layer], index, axis=1)

  resid_pre, written = here(clean.resid_pre), here(clean.written)
  if site == "attn_out":
    outputs = [
      _call(model, params, layer, Block.finish, resid, x).attn_out
      for resid, x in (
        (resid_pre, written),
        (here(other.resid_pre), here(other.written)),
      )
    ]
    amount = (outputs[1] - outputs[0])[:, 0]
    direction = jnp.eye(model.config.d_model, dtype=amount.dtype)
  else:
    W_O = weights.per_query_head(params, model.config, "W_O")[layer]
    dz = here(other.z - clean.z)[:, 0]
    basis = basis.astype(dz.dtype)
    amount = jnp.einsum("bhd,hde->bhe", dz, basis).reshape(dz.shape[0], -1)
    direction = jnp.einsum("hde,hdm->hem", basis, W_O)
    direction = direction.reshape(-1, W_O.shape[-1]).astype(dz.dtype)
  kv = cached_keys(model, params, clean)
  line = jnp.arange(batch.clean.shape[1])[None]
  before = batch.key_valid & (line < batch.answer_pos[:, None])
  answer = batch.answer_pos[:, None]
  return Setting(
    resid_pre,
    written,
    amount,
    direction,
    kv.k,
    kv.v,
    Context(kv.context.positions, before),
    Context(answer, jnp.ones(answer.shape, bool)),
  )


@functools.partial(fast_jit, static_argnames=("model", "site"))
def sweep(
  model: Decoder, site: str, params: Any, batch: Batch, setting: Setting,
  layer, some,
) -> tuple[jax.Array, jax.Array]:  # fmt: skip
  """Moves some directions, each alone; traceable.

  Args:
    model: the `Decoder`; static, causal.
    site: as in `prepare`; static.
    params: its parameters.
    batch: of prompts.
    setting: from `prepare`.
    layer: scalar int, the same.
    some: `[n]` int, the directions.

  Returns:
    `[batch]` logit differences of the clean row, and `[n, batch]` effects,
    clean minus moved.
  """
  amount = setting.amount[:, some].T[:, :, None, None]
  change = amount * setting.direction[some][:, None, None, :]
  change = jnp.concatenate([jnp.zeros_like(change[:1]), change])
  metric = LogitDifference(batch.answer, batch.foil)

  def start(change):
    edits, written = Edits(), setting.written + change
    if site == "attn_out":
      gate = jnp.ones((1, 1, 1), change.dtype)
      edits, written = Edits(attn_out=_add(gate, change)), setting.written
    arguments = (setting.resid_pre, written, edits)
    return _call(model, params, layer, Block.finish, *arguments).resid_post

  def later(layer, rows):
    kv = KV(setting.k[layer], setting.v[layer], setting.cached)

    def one(resid_pre):
      call = functools.partial(_call, model, params, layer)
      statics = _at(layer_statics(model.config), layer)
      heads = call(Block.attend, statics, resid_pre, setting.context, prefix=kv)
      written = call(Block.write, statics, heads.z)
      return call(Block.finish, resid_pre, written).resid_post

    return jax.vmap(one)(rows)

  rows = jax.vmap(start)(change)
  rows = jax.lax.fori_loop(layer + 1, model.config.n_layers, later, rows)
  found = jax.vmap(functools.partial(metric, model, params))(rows[:, :, 0])
  # What does not change has an effect of 0, not the rounding between rows.
  moves = setting.amount[:, some].T != 0
  return found[0], jnp.where(moves, found[:1] - found[1:], 0)


def _add(gate: jax.Array, value: jax.Array) -> tuple[Edit, Edit]:
  """Adds a value, exactly: first x becomes 2 x, then halfway to 2 value."""
  return Edit(-gate, jnp.zeros_like(gate)), Edit(gate / 2, 2 * value)


def _at(tree, layer):
  return jax.tree.map(lambda x: x[layer], tree)


def _call(model: Decoder, params, layer, method, *args, **kwargs):
  here = {"params": _at(weights.blocks(params), layer)}
  return Block(model.config).apply(here, *args, method=method, **kwargs)
