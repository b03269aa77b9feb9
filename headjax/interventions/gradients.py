"""How does the answer respond to what the heads of each layer write?

tau_l is the gradient of a number in the attention output of layer l, all later
layers responding. It is one backward pass: nothing is added to each layer's
output, and the number's gradient in that nothing is asked for.

Kept are inner products over examples and positions: of the gradients of any two
layers, and of their projections onto the write spaces of any two heads.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check_choice
from headjax.data.pairs import PromptPairs
from headjax.geometry.energy import gram_basis
from headjax.interventions import chunks
from headjax.interventions.leakage import check_additive
from headjax.interventions.metrics import LogitDifference
from headjax.interventions.pooling import pooled
from headjax.interventions.questions import Batch
from headjax.interventions.sweep import at_answer
from headjax.models import weights
from headjax.models.compiling import fast_jit
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder, run, unembed
from headjax.models.layers import wide
from headjax.models.load import LoadedModel
from headjax.models.sites import Edit, Edits

OBJECTIVES = ("logit_difference", "next_token")
Objective = Callable[[jax.Array], jax.Array]


class Products(NamedTuple):
  """Inner products of gradients, pooled over examples and positions.

  Attributes:
    layers: `[layer, layer]`, of tau_l and tau_l'.
    heads: `[layer, head, layer, head]`, of P_lh tau_l and P_l'h' tau_l', where
      P_lh projects onto what head h of layer l writes.
  """

  layers: np.ndarray
  heads: np.ndarray


def attn_out_gradient(
  model: Decoder,
  params: Any,
  tokens: jax.Array,
  key_valid: jax.Array,
  objective: Objective,
) -> jax.Array:
  """The gradient of a number in every layer's attention output; traceable.

  Args:
    model: the `Decoder`.
    params: its parameters.
    tokens: `[batch, pos]`.
    key_valid: `[batch, pos]` bool.
    objective: from the final stream `[batch, pos, d_model]` to a scalar.

  Returns:
    `[layer, batch, pos, d_model]`.
  """
  config = model.config
  shape = (config.n_layers, *tokens.shape, config.d_model)
  nothing = jnp.zeros(shape, params["embed"]["W_E"].dtype)

  def value(added):
    edits = _added(config, added)
    resid, _ = run(model, params, tokens, edits, key_valid=key_valid)
    return objective(resid)

  return jax.grad(value)(nothing)


def _added(config: ModelConfig, value: jax.Array) -> Edits:
  """Adds a value to the attention outputs, exactly.

  An edit blends: first x becomes 2 x, then halfway to twice the value.
  """
  gate = jnp.ones((config.n_layers, 1, 1, 1), value.dtype)
  twice = Edit(-gate, jnp.zeros_like(gate))
  return Edits(attn_out=(twice, Edit(gate / 2, 2 * value)))


def gradient_products(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  objective: str = "logit_difference",
  budget_bytes: int = chunks.GIB,
  progress: bool = False,
) -> Products:
  """Inner products of the gradients on the clean prompts.

  Args:
    model: from `load_model`.
    pairs: prompts; of "next_token", every token of a clean prompt but the
      first is predicted, and the rest does not matter.
    objective: "logit_difference" at the answer, or the "next_token" loss,
      summed over positions.
    budget_bytes: memory for the projected gradients of one chunk.
    progress: whether to show a progress bar.

  Returns:
    The products, float64.

  Raises:
    ValueError: another objective, or the model norms its attention output.
  """
  check_choice("objective", objective, OBJECTIVES)
  check_additive(model.config)
  W_O = weights.per_query_head(model.params, model.config, "W_O")
  columns = gram_basis(W_O.mT).columns
  part = functools.partial(_products, objective, columns)
  examples = _fitting(model.config, pairs.clean.shape[1], budget_bytes)
  found = pooled(part, model, pairs, examples=examples, progress=progress)
  n_layers, n_heads = model.config.n_layers, model.config.n_heads
  heads = found.heads.reshape(n_layers, n_heads, n_layers, n_heads)
  return Products(found.layers, heads)


def _fitting(config: ModelConfig, n_pos: int, budget_bytes: int) -> int:
  """Examples whose gradients fit, projected onto every head's writes."""
  per_layer = (config.n_heads + 3) * config.d_model
  return max(1, budget_bytes // (8 * config.n_layers * per_layer * n_pos))


def _products(objective, columns, model, params, batch):
  return _pooled_products(model, objective, columns, params, batch)


@functools.partial(fast_jit, static_argnames=("model", "objective"))
def _pooled_products(
  model: Decoder, objective: str, columns: jax.Array, params: Any, batch: Batch
) -> Products:
  number = {
    "logit_difference": _logit_difference,
    "next_token": next_token_loss,
  }[objective]
  number = functools.partial(number, model, params, batch)
  tau = attn_out_gradient(model, params, batch.clean, batch.key_valid, number)
  tau = tau.reshape(tau.shape[0], -1, tau.shape[-1])
  within = jnp.einsum("lrd,lhdk->lhrk", tau, columns)
  onto = jnp.einsum("lhrk,lhdk->lhrd", within, columns)
  onto = onto.reshape(tau.shape[0] * columns.shape[1], -1)
  flat = tau.reshape(tau.shape[0], -1)
  return Products(flat @ flat.T, onto @ onto.T)


def _logit_difference(model, params, batch, resid):
  metric = LogitDifference(batch.answer, batch.foil)
  found = metric(model, params, at_answer(resid, batch.answer_pos))
  return jnp.where(batch.key_valid[:, 0], found, 0).sum()


def next_token_loss(
  model: Decoder, params: Any, batch: Batch, resid: jax.Array
) -> jax.Array:
  """-log p of every next token of the clean prompts, summed; traceable.

  Args:
    model: the `Decoder`.
    params: its parameters.
    batch: of prompts.
    resid: `[batch, pos, d_model]`, the final stream.
  """
  logits = unembed(model, params, resid[:, :-1])
  log_p = jax.nn.log_softmax(logits.astype(wide(logits.dtype)), axis=-1)
  targets = batch.clean[:, 1:, None]
  found = jnp.take_along_axis(log_p, targets, axis=-1)[..., 0]
  return -jnp.where(batch.key_valid[:, 1:], found, 0).sum()
