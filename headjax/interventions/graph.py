"""What does a model compute when some edges carry another run's values?

Every receiver has a stream of its own: what each sender gives along the edges
that are present, and what it gave in a corrupted run along the others. With
all edges present this is the model itself; the gradient in the mask is the
attribution of the edges. Biases of the attention output belong to no sender and
are always there.
"""

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

from headjax.checks import check
from headjax.interventions import nodes
from headjax.interventions.graph_layer import Step
from headjax.models import weights
from headjax.models.block import Block, layer_statics
from headjax.models.decoder import Decoder, check_tokens, default_context, run
from headjax.models.softmax import Context
from headjax.outline import of_fields, table_of_fields


@flax.struct.dataclass
class Resume:
  """Where to enter a run whose earlier layers are known.

  Attributes:
    layer: scalar int, the first layer to compute.
    sent: `[sender, batch, pos, d_model]`, what is sent before it.
  """

  layer: jax.Array
  sent: jax.Array

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def run_graph(
  model: Decoder,
  params: Any,
  tokens: jax.Array,
  mask: jax.Array,
  corrupted: jax.Array,
  *,
  key_valid: jax.Array | None = None,
  resume: Resume | None = None,
) -> jax.Array:
  """Runs the model along the edges of a mask.

  Args:
    model: the `Decoder`; static.
    params: its parameters.
    tokens: `[batch, pos]`.
    mask: `[receiver, sender]` in the orders of `headjax.interventions.nodes`;
      1 where an edge carries this run, 0 where it carries the corrupted one,
      in between a mixture. Where there can be no edge, it does not matter.
    corrupted: `[sender, batch, pos, d_model]`, from `sent` on other tokens, or
      zeros.
    key_valid: `[batch, pos]` bool, False where a token is padding.
    resume: to leave out layers whose edges are all present.

  Returns:
    The stream that the unembedding reads, `[batch, pos, d_model]`.

  Raises:
    ValueError: the model's parts do not add up, or shapes do not fit.
  """
  config = model.config
  nodes.check_splits(config)
  check_tokens(config, tokens)
  _check_shape("mask", mask, nodes.possible(config).shape)
  shape = (mask.shape[1], *tokens.shape, config.d_model)
  _check_shape("corrupted", corrupted, shape)
  context = default_context(tokens, None, key_valid)
  first = input_senders(model, params, tokens, context)
  return along(model, params, first, mask, corrupted, context, resume=resume)


def _check_shape(name, array, shape):
  check(
    jnp.shape(array) == shape,
    name,
    f"shape {jnp.shape(array)}",
    f"shape {shape}",
    "take the orders of senders and receivers from interventions.nodes",
  )


def sent(
  model: Decoder,
  params: Any,
  tokens: jax.Array,
  *,
  key_valid: jax.Array | None = None,
) -> jax.Array:
  """What every sender gives in a plain run.

  Args:
    model: the `Decoder`; static.
    params: its parameters.
    tokens: `[batch, pos]`.
    key_valid: `[batch, pos]` bool, False where a token is padding.

  Returns:
    `[sender, batch, pos, d_model]`.

  Raises:
    ValueError: the model's parts do not add up.
  """
  config, block = model.config, Block(model.config)
  nodes.check_splits(config)
  context = default_context(tokens, None, key_valid)
  _, acts = run(model, params, tokens, key_valid=key_valid)

  def of_layer(params, statics, z):
    return block.apply(
      {"params": params}, statics, z, jnp.arange(config.n_heads),
      method=Block.write_per_head,
    )  # fmt: skip

  found = jax.vmap(of_layer)(
    weights.blocks(params), layer_statics(config), acts.z
  )
  if config.mlp != "none":
    found = jnp.concatenate([found, acts.mlp_out[:, None]], axis=1)
  first = input_senders(model, params, tokens, context)
  return jnp.concatenate([first, found.reshape(-1, *found.shape[2:])])


def input_senders(
  model: Decoder, params: Any, tokens: jax.Array, context: Context
) -> jax.Array:
  """What the token embedding and the position table give.

  Args:
    model: the `Decoder`; static.
    params: its parameters.
    tokens: `[batch, pos]`.
    context: where the tokens stand.

  Returns:
    `[sender, batch, pos, d_model]`.
  """
  whole = model.apply(
    {"params": params}, tokens, context.positions, method=_embed
  )
  if nodes.n_inputs(model.config) == 1:
    return whole[None]
  positions = weights.get(params, "W_pos")[context.positions]
  return jnp.stack([whole - positions, positions])


def _embed(model: Decoder, tokens, positions):
  return model.embed(tokens, positions)


def along(
  model: Decoder,
  params: Any,
  first: jax.Array,
  mask: jax.Array,
  corrupted: jax.Array,
  context: Context,
  *,
  added: jax.Array | None = None,
  resume: Resume | None = None,
) -> jax.Array:
  """As `run_graph`, from what the input senders give; traceable.

  Args:
    model: the `Decoder`; static.
    params: its parameters.
    first: `[sender, batch, pos, d_model]`, of the input senders.
    mask: `[receiver, sender]`.
    corrupted: `[sender, batch, pos, d_model]`.
    context: where the tokens stand.
    added: `[receiver, batch, pos, d_model]`, what is added to what each
      receiver reads; its gradient is that of the receivers' inputs.
    resume: to leave out layers whose edges are all present.
  """
  config = model.config
  n_layers, n_first = config.n_layers, len(first)
  mask = jnp.where(nodes.possible(config), mask, 0).astype(first.dtype)
  step = Step(config, context, nodes.per_layer(config))

  def by_layer(x):
    return x.reshape(n_layers, -1, *x.shape[1:])

  if resume is None:
    more = jnp.zeros_like(corrupted[n_first:])
  else:
    more = resume.sent[n_first:] - corrupted[n_first:]
  ahead = jnp.concatenate([first - corrupted[:n_first], more])
  layers = (
    weights.blocks(params), layer_statics(config), jnp.arange(n_layers),
    by_layer(mask[:-1]), by_layer(corrupted[n_first:]),
    None if added is None else by_layer(added[:-1]),
  )  # fmt: skip
  start = None if resume is None else resume.layer

  def layer(carry, layer):
    return step(carry, layer, start), None

  carry = (corrupted[:n_first].sum(0), ahead)
  (base, ahead), _ = jax.lax.scan(layer, carry, layers)
  resid = base + jnp.einsum("s,sbpd->bpd", mask[-1], ahead)
  return resid if added is None else resid + added[-1]
