"""What does each head write towards the answer? Signed, at the last position.

The final norm is frozen at the scale that it has in the prompt, so what the
heads write adds up. A head's mean write over the prompts is taken out: what is
left depends on the prompt.
"""

import functools
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from headjax import results
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks
from headjax.interventions.leakage import check_additive
from headjax.interventions.questions import Batch, batch_of, check_pairs
from headjax.interventions.record import record
from headjax.interventions.sweep import PRECISION, at_answer
from headjax.models import spaces, weights
from headjax.models.compiling import fast_jit
from headjax.models.decoder import Decoder
from headjax.models.layers import wide
from headjax.models.load import LoadedModel


def direct_logits(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  centred: bool = True,
  examples: int = 64,
) -> xr.Dataset:
  """The direct logit attribution of every head, in one forward.

  Args:
    model: from `load_model`.
    pairs: prompts; the references are not run.
    centred: whether the mean over these prompts of what a head writes is taken
      out before.
    examples: at once.

  Returns:
    A dataset with `attribution[example, layer, head]`, the logit of the answer
    less that of the foil that a head's write alone gives, in logits (nats),
    before a cap of the logits, and `base[example]`, the whole difference.

  Raises:
    ValueError: the model norms its attention output, behind which no head has
      a write of its own, or cannot run the prompts.

  Source: paper C, refined direct logit attribution. The final norm's own mean
    over coordinates is taken out of each write too: with it the attributions
    of everything in the stream add up to the logit difference.
  """
  check_pairs(model.config, pairs)
  check_additive(model.config)
  began = time.perf_counter()
  examples = min(examples, len(pairs))
  config = model.config
  shape = (len(pairs), config.n_layers, config.n_heads)
  own, base = np.zeros(shape), np.zeros(len(pairs))
  reader = np.zeros((len(pairs), config.d_model))
  mean = np.zeros((*shape[1:], config.d_model))
  with jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(pairs), examples):
      n = place.stop - place.start
      batch = batch_of(pairs, index)
      batch.key_valid[n:] = False
      found = _attribute(model.model, model.params, batch)
      own[place], reader[place], base[place] = (
        np.asarray(x, np.float64)[:n] for x in found[:3]
      )
      mean += np.asarray(found[3], np.float64) / len(pairs)
    if centred:
      own -= np.einsum("bd,lhd->blh", reader, mean)
    provenance = results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=examples,
      method="direct logit attribution",
      site="z",
      position="last",
      centred=centred,
      forwards=1,
    )
  labelled = results.dataset(
    own,
    base,
    group=pairs.group,
    condition=pairs.condition,
    provenance=provenance,
  )
  labelled.effect.attrs["long_name"] = "direct logit attribution"
  return labelled.rename(effect="attribution")


@functools.partial(fast_jit, static_argnames=("model",))
def _attribute(model: Decoder, params: Any, batch: Batch):
  """Attributions, the frozen reader, the difference, and summed writes."""
  config = model.config
  see = record(model, params, batch.clean, key_valid=batch.key_valid)
  resid = at_answer(see.resid, batch.answer_pos)
  read = frozen_reader(model, params, resid, batch.answer, batch.foil)
  at = batch.answer_pos.reshape(1, -1, 1, 1, 1)
  z = jnp.take_along_axis(see.z, at, axis=2)[:, :, 0]
  W_O = weights.per_query_head(params, config, "W_O")
  seen = batch.key_valid.any(axis=1).astype(z.dtype)
  through = jnp.einsum("bd,lhed->lbhe", read.astype(z.dtype), W_O)
  own = jnp.einsum("lbhe,lbhe->blh", z, through)
  mean = jnp.einsum("lbhe,b,lhed->lhd", z, seen, W_O)
  bias = _bias(model, params, batch.answer, batch.foil)
  difference = (read * resid.astype(read.dtype)).sum(-1) + bias
  return own, read, difference, mean


def frozen_reader(
  model: Decoder,
  params: Any,
  resid: jax.Array,
  answer: jax.Array,
  foil: jax.Array,
) -> jax.Array:
  """What a small write is multiplied with to become a logit difference.

  Args:
    model: the `Decoder`.
    params: its parameters.
    resid: `[batch, d_model]`, the final stream, at whose scale the norm is.
    answer: `[batch]` int.
    foil: `[batch]` int.

  Returns:
    `[batch, d_model]`, in at least float32.
  """
  config, dtype = model.config, wide(resid.dtype)
  read = _direction(model, params, answer, foil).astype(dtype)
  if config.norm == "none":
    return read
  gain = weights.norm_gain(params, config, "final_norm_gain")
  if gain is not None:
    read = read * gain.astype(dtype).reshape(1, -1)
  x = resid.astype(dtype)
  if spaces.centres(config):
    x = x - x.mean(-1, keepdims=True)
    read = read - read.mean(-1, keepdims=True)
  square = (x * x).mean(-1, keepdims=True) + config.norm_eps
  return read * jax.lax.rsqrt(square)


def _direction(model, params, answer, foil) -> jax.Array:
  """`[batch, d_model]`: the unembedding of the answer less the foil's."""
  columns = functools.partial(
    model.apply, {"params": params}, method=Decoder.columns
  )
  return columns(answer) - columns(foil)


def _bias(model, params, answer, foil) -> jax.Array:
  """`[batch]`: what the bias of the final norm adds to the difference."""
  if model.config.norm != "layernorm":
    return jnp.zeros(answer.shape)
  bias = weights.get(params, "final_norm_bias")
  direction = _direction(model, params, answer, foil)
  return (direction * bias.astype(direction.dtype).reshape(1, -1)).sum(-1)
