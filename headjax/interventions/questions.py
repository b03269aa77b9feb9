"""What is asked of a batch of prompts, and what does a sweep need for it?

A `Question` (which site, which positions, which metric) is static; a `Batch`
of prompts is data. From both come the inputs of the suffix sweep and of the
general one, traceable, so that what they do not need is never computed.
"""

import functools
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from headjax.data.pairs import PromptPairs
from headjax.interventions import suffix
from headjax.interventions.divergence import NegativeKL
from headjax.interventions.metrics import LogitDifference, LogProbability
from headjax.interventions.record import (
  Run,
  alternative_z,
  record,
  replace_site,
)
from headjax.interventions.sweep import Metric, at_answer
from headjax.models.compiling import fast_jit
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder

METRICS = ("kl", "log_probability", "logit_difference")
POSITIONS = ("all", "last")


@flax.struct.dataclass
class Question:
  """Static, so each kind of question compiles once.

  Attributes:
    site: what is replaced: "z", "q", "k" or "v".
    position: "all", or "last" for the answer position alone.
    metric: one of `METRICS`.
  """

  site: str = flax.struct.field(pytree_node=False)
  position: str = flax.struct.field(pytree_node=False)
  metric: str = flax.struct.field(pytree_node=False)


@flax.struct.dataclass
class Batch:
  """One chunk of prompt pairs.

  Attributes:
    clean, reference: `[batch, pos]` token ids, right-padded.
    answer, foil: `[batch]` token ids.
    answer_pos: `[batch]` the position whose prediction is measured.
    key_valid: `[batch, pos]` bool, False on padding.
  """

  clean: jax.Array
  reference: jax.Array
  answer: jax.Array
  foil: jax.Array
  answer_pos: jax.Array
  key_valid: jax.Array


def batch_of(pairs: PromptPairs, index: np.ndarray) -> Batch:
  """The pairs at some indices, as host arrays."""
  valid = np.arange(pairs.clean.shape[1]) < pairs.lengths[index][:, None]
  return Batch(
    pairs.clean[index],
    pairs.reference[index],
    pairs.answer[index],
    pairs.foil[index],
    pairs.answer_pos[index],
    valid,
  )


def check_pairs(config: ModelConfig, pairs: PromptPairs) -> None:
  """Fails unless a model can run the prompts."""
  pairs.check_vocabulary(config.d_vocab)
  pairs.check_context(config.n_ctx)


def first_change(
  pairs: PromptPairs, question: Question, value: jax.Array | None
) -> np.ndarray:
  """`[example]`: the first position where the replaced site can differ."""
  if question.position == "last":
    return pairs.answer_pos
  if value is not None:
    return np.zeros_like(pairs.answer_pos)
  return pairs.first_difference


@functools.partial(fast_jit, static_argnames=("model", "question", "holds"))
def suffix_inputs(
  model: Decoder,
  question: Question,
  params: Any,
  batch: Batch,
  window: suffix.Window,
  value: jax.Array | None,
  holds: bool = False,
) -> tuple[suffix.Base, Metric, jax.Array]:
  """What `sweep_layers` needs: the cut clean run, the metric, its base."""
  clean, other, metric = _runs(model, question, params, batch, value)
  z_alt = alternative_z(model, params, question.site, clean, other)
  base = metric(model, params, at_answer(clean.resid, batch.answer_pos))
  shared = suffix.prepare(model, params, clean, z_alt, window, holds)
  return shared, metric, base


@functools.partial(fast_jit, static_argnames=("model", "question"))
def general_inputs(
  model: Decoder,
  question: Question,
  params: Any,
  batch: Batch,
  value: jax.Array | None,
) -> tuple[jax.Array, Metric]:
  """What `general_sweep` needs: the site's replacement, and the metric."""
  _, other, metric = _runs(model, question, params, batch, value)
  return getattr(other, question.site), metric


def _runs(
  model: Decoder, question: Question, params: Any, batch: Batch, value
) -> tuple[Run, Run, Metric]:
  """The clean run, its record with the site replaced, and the metric."""
  see = functools.partial(record, model, params, key_valid=batch.key_valid)
  clean = see(batch.clean)
  if value is None:
    value = getattr(see(batch.reference), question.site)
  where = batch.key_valid
  if question.position == "last":
    line = jnp.arange(where.shape[1])[None]
    where = line == batch.answer_pos[:, None]
  other = replace_site(question.site, clean, value, where)
  return clean, other, _metric(question.metric, batch, clean)


def _metric(name: str, batch: Batch, clean: Run) -> Metric:
  if name == "logit_difference":
    return LogitDifference(batch.answer, batch.foil)
  if name == "log_probability":
    return LogProbability(batch.answer)
  return NegativeKL(at_answer(clean.resid, batch.answer_pos))


@functools.partial(jax.jit, static_argnames=("model", "site"))
def site_sum(model: Decoder, site: str, params: Any, batch: Batch) -> jax.Array:
  """A site of the clean run, summed over the valid positions of a batch.

  Returns:
    `[layer, 1, 1, head, width]`, as wide as the site.
  """
  seen = getattr(
    record(model, params, batch.clean, key_valid=batch.key_valid), site
  )
  weight = batch.key_valid.astype(seen.dtype)
  return jnp.einsum("lbphe,bp->lhe", seen, weight)[:, None, None]
