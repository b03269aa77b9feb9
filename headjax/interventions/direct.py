"""What does a head do by itself? Its direct effect, in closed form.

If everything after a head is kept at its clean values, its patch reaches the
final stream unchanged, so the direct effect needs one unembedding for each head
and no forward pass. What total and direct effect differ by went through other
components, or was made up for by them.
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
from headjax.interventions.batches import Batches
from headjax.interventions.metrics import LogitDifference
from headjax.interventions.nodes import check_sum
from headjax.interventions.questions import Batch, check_pairs
from headjax.interventions.record import record
from headjax.interventions.sweep import PRECISION, at_answer
from headjax.models import weights
from headjax.models.block import Block, layer_statics
from headjax.models.compiling import fast_jit
from headjax.models.decoder import Decoder
from headjax.models.load import LoadedModel


def direct_effects(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  budget_bytes: int = 2 * chunks.GIB,
) -> xr.Dataset:
  """The direct effect of patching every head by the reference, each alone.

  Later heads, and the MLPs from the head's own layer on, keep their clean
  outputs. A norm of the attention output, where there is one, sees the patch;
  so does the final norm.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts.
    budget_bytes: memory per device, beside the parameters.

  Returns:
    A dataset as of `patch_heads`: `effect[example, layer, head]`, clean minus
    patched, in logits (nats), and `base[example]`.

  Raises:
    ValueError: prompts that the model cannot run, a budget that not one
      example fits, or norms of the stream after every half.

  Source: paper A, appendix B.3, the direct path.
  """
  check_pairs(model.config, pairs)
  check_sum(model.config)
  began = time.perf_counter()
  batches = Batches(model, pairs, budget_bytes)
  sites = (model.config.n_layers, model.config.n_heads)
  effect, base = np.zeros((len(pairs), *sites)), np.zeros(len(pairs))
  with jax.default_matmul_precision(PRECISION):
    for part in batches:
      found, clean = _direct(model.model, batches.params, part.batch)
      effect[part.place] = np.moveaxis(np.asarray(found), -1, 0)[: part.n]
      base[part.place] = np.asarray(clean)[: part.n]
    provenance = results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=batches.plan.examples,
      method="closed form",
      site="z",
      position="all",
      ablation="reference",
      path="direct",
    )
  return results.dataset(
    effect,
    base,
    group=pairs.group,
    condition=pairs.condition,
    provenance=provenance,
  )


@functools.partial(fast_jit, static_argnames=("model",))
def _direct(
  model: Decoder, params: Any, batch: Batch
) -> tuple[jax.Array, jax.Array]:
  """`[layer, head, batch]` direct effects and the clean metric `[batch]`."""
  see = functools.partial(record, model, params, key_valid=batch.key_valid)
  clean, reference = see(batch.clean), see(batch.reference)
  metric = LogitDifference(batch.answer, batch.foil)
  block, heads = Block(model.config), jnp.arange(model.config.n_heads)
  resid = at_answer(clean.resid, batch.answer_pos)
  base = metric(model, params, resid)

  def of_layer(layer):
    params_here, statics, resid_pre, written, dz = layer
    call = functools.partial(block.apply, {"params": params_here})
    delta = call(statics, dz, heads, method=Block.write_per_head)

    def attn_out(written):
      return call(resid_pre, written, method=Block.finish).attn_out[:, 0]

    def drop(delta):
      change = attn_out(written + delta) - attn_out(written)
      return base - metric(model, params, resid + change)

    return jax.vmap(drop)(delta)

  at = functools.partial(_at_answer, answer=batch.answer_pos)
  layers = (
    weights.blocks(params),
    layer_statics(model.config),
    at(clean.resid_pre),
    at(clean.written),
    at(reference.z - clean.z),
  )
  return jax.lax.map(of_layer, layers), base


def _at_answer(x: jax.Array, answer: jax.Array) -> jax.Array:
  """One position of `[layer, batch, pos, ...]`, as a sequence of one."""
  index = answer.reshape(1, -1, 1, *(1,) * (x.ndim - 3))
  return jnp.take_along_axis(x, index, axis=2)
