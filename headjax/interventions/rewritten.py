"""Does a head write the same when what it takes in is spoilt? Two ways.

Its values are put at other tokens, or a head before it is taken away. The final
norm stays frozen at its scale in the whole model: with a scale of its own every
lesion would change what all heads write.
"""

import functools
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from headjax import results
from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks
from headjax.interventions.direct_logits import frozen_reader
from headjax.interventions.leakage import check_additive
from headjax.interventions.prepared import labels
from headjax.interventions.questions import Batch, batch_of, check_pairs
from headjax.interventions.sweep import PRECISION, at_answer
from headjax.models import weights
from headjax.models.compiling import fast_jit
from headjax.models.decoder import Decoder, run
from headjax.models.load import LoadedModel
from headjax.models.sites import Edit, Edits


def shuffled_values(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  shuffles: int = 5,
  examples: int = 16,
) -> xr.Dataset:
  """Attributions with the values of every head at other tokens.

  The attention of a head stays, and its values change places among the tokens
  that the answer sees. One forward serves all heads, each of them alone.

  Args:
    model: from `load_model`.
    pairs: prompts; the references are not run.
    shuffles: permutations of each prompt; the seeds are 0, 1, ...
    examples: at once.

  Returns:
    `attribution[example, layer, head]` and `changed[condition, example, layer,
    head]`, one condition for each shuffle, in logits (nats).

  Raises:
    ValueError: screening attention, whose outputs are no sums of values, or
      what `direct_logits` refuses.

  Source: paper C, the V-shuffle.
  """
  check(
    model.config.attention != "screening",
    "model",
    "screening attention",
    "heads whose outputs are sums of values",
    "this measurement has no meaning for it",
  )
  check(shuffles >= 1, "shuffles", shuffles, "at least 1", "shuffle")
  orders = _orders(pairs, shuffles)

  def conditions(index):
    return orders[:, index]

  return _changed(
    model, pairs, _shuffled, conditions, examples,
    {"condition": np.arange(shuffles)}, method="shuffled values",
  )  # fmt: skip


def without_heads(
  model: LoadedModel,
  pairs: PromptPairs,
  heads: Sequence[tuple[int, int]],
  *,
  examples: int = 32,
) -> xr.Dataset:
  """Attributions of all heads without each of some heads.

  Args:
    model: from `load_model`.
    pairs: prompts; the references are not run.
    heads: (layer, head) to take away, one at a time, at all tokens.
    examples: at once.

  Returns:
    `attribution[example, layer, head]` and `changed[condition, example, layer,
    head]`, one condition for each of `heads`, in logits (nats).

  Raises:
    ValueError: no heads, or what `direct_logits` refuses.

  Source: paper C, the V-cascade.
  """
  config = model.config
  check(len(heads) > 0, "heads", "none", "at least one", "name some")
  gates = np.zeros((len(heads), config.n_layers, config.n_heads))
  for gate, (layer, head) in zip(gates, heads, strict=True):
    gate[layer, head] = 1
  gates = gates.astype(jax.tree.leaves(model.params)[0].dtype)
  layers, index = np.array(heads).T
  coords = {
    "source_layer": ("condition", layers),
    "source_head": ("condition", index),
  }
  return _changed(
    model, pairs, _without, lambda _: gates, examples, coords,
    method="without heads", ablation="zero",
  )  # fmt: skip


def _changed(model, pairs, call, conditions, examples, coords, **about):
  """Runs all conditions, and takes out the mean writes of each."""
  check_pairs(model.config, pairs)
  check_additive(model.config)
  began = time.perf_counter()
  examples, parts = min(examples, len(pairs)), []
  with jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(pairs), examples):
      n, batch = place.stop - place.start, batch_of(pairs, index)
      batch.key_valid[n:] = False
      found = call(model.model, model.params, batch, conditions(index))
      read, own, writes = (np.asarray(x, np.float64) for x in found)
      parts.append((read[:n], own[:, :n], writes))
  read, own, writes = zip(*parts, strict=True)
  own, mean = np.concatenate(own, axis=1), sum(writes) / len(pairs)
  own -= np.einsum("bd,clhd->cblh", np.concatenate(read), mean)
  units = {"long_name": "direct logit attribution", "units": results.LOGITS}
  dims = ("example", "layer", "head")
  return xr.Dataset(
    {
      "attribution": (dims, own[0], units),
      "changed": (("condition", *dims), own[1:], units),
    },
    labels(pairs) | coords,
    attrs=results.provenance(
      model=model, pairs=pairs, wall_s=time.perf_counter() - began,
      chunk=examples, position="last", **about,
    ),
  )  # fmt: skip


@functools.partial(fast_jit, static_argnames=("model",))
def _shuffled(model: Decoder, params: Any, batch: Batch, orders: jax.Array):
  """The reader, attributions and writes, as they are and of each order."""
  resid, acts = run(model, params, batch.clean, key_valid=batch.key_valid)
  read = _reader(model, params, batch, resid)
  at = batch.answer_pos.reshape(1, -1, 1, 1, 1)
  pattern = jnp.take_along_axis(acts.pattern, at, axis=3)[:, :, :, 0]
  line = jnp.arange(orders.shape[-1])[None, None]
  every = jnp.concatenate([jnp.broadcast_to(line, orders[:1].shape), orders])

  def one(order):
    v = jnp.take_along_axis(acts.v, order[None, :, :, None, None], axis=2)
    return jnp.einsum("lbhk,lbkhe->lbhe", pattern, v)

  z = jax.lax.map(one, every)
  return read, *_written(model, params, batch, read, z)


@functools.partial(fast_jit, static_argnames=("model",))
def _without(model: Decoder, params: Any, batch: Batch, gates: jax.Array):
  """The reader, attributions and writes, of the whole and of each gate."""
  resid, _ = run(model, params, batch.clean, key_valid=batch.key_valid)
  read = _reader(model, params, batch, resid)
  at = batch.answer_pos.reshape(1, -1, 1, 1, 1)
  zero = jnp.zeros((gates.shape[1], 1, 1, 1, 1), gates.dtype)

  def one(gate):
    edits = Edits(z=(Edit(gate[:, None, None, :, None], zero),))
    _, acts = run(model, params, batch.clean, edits, key_valid=batch.key_valid)
    return jnp.take_along_axis(acts.z, at, axis=2)[:, :, 0]

  every = jnp.concatenate([jnp.zeros_like(gates[:1]), gates])
  z = jax.lax.map(one, every)
  return read, *_written(model, params, batch, read, z)


def _reader(model, params, batch, resid):
  last = at_answer(resid, batch.answer_pos)
  return frozen_reader(model, params, last, batch.answer, batch.foil)


def _written(model, params, batch, read, z):
  """Attributions `[c, b, l, h]`, and summed writes `[c, l, h, d]`.

  Args:
    model: the `Decoder`.
    params: its parameters.
    batch: whose examples without any valid token are repeats.
    read: `[batch, d_model]`.
    z: `[condition, layer, batch, head, d_head]`.
  """
  W_O = weights.per_query_head(params, model.config, "W_O")
  through = jnp.einsum("bd,lhed->lbhe", read.astype(z.dtype), W_O)
  own = jnp.einsum("clbhe,lbhe->cblh", z, through)
  seen = batch.key_valid.any(axis=1).astype(z.dtype)
  return own, jnp.einsum("clbhe,b,lhed->clhd", z, seen, W_O)


def _orders(pairs: PromptPairs, shuffles: int) -> np.ndarray:
  """`[shuffle, example, pos]`: orders of the tokens of each prompt."""
  found = np.tile(np.arange(pairs.clean.shape[1]), (shuffles, len(pairs), 1))
  for seed, orders in enumerate(found):
    rng = np.random.default_rng(seed)
    for order, n in zip(orders, pairs.lengths, strict=True):
      order[:n] = rng.permutation(n)
  return found
