"""What does a task ask of a model? Sums of some logits, edited or not."""

import functools
from collections.abc import Sequence
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from headjax.interventions import chunks
from headjax.interventions.projections import only_where
from headjax.interventions.sweep import PRECISION
from headjax.models.compiling import fast_jit
from headjax.models.decoder import Decoder, run, unembed_tokens
from headjax.models.load import LoadedModel
from headjax.models.prompts import check_prompts
from headjax.models.sites import Edits


@flax.struct.dataclass
class Outputs:
  """What a task asks of the logits: sums of those of some tokens.

  Attributes:
    tokens: `[m]` int ids.
    mixing: `[outputs, m]`, the factor of each logit in each output.
  """

  tokens: jax.Array
  mixing: jax.Array

  def __call__(self, model: Decoder, params: Any, resid: jax.Array):
    """`[..., outputs]` of the final stream `[..., d_model]`."""
    lead, m = resid.shape[:-1], len(self.tokens)
    repeated = jnp.broadcast_to(resid, (m, *resid.shape))
    ids = self.tokens.reshape((m,) + (1,) * len(lead))
    logits = unembed_tokens(
      model, params, repeated, jnp.broadcast_to(ids, (m, *lead))
    )
    mixing = self.mixing.astype(logits.dtype)
    return jnp.einsum("m...,km->...k", logits, mixing)


def each(n: int) -> Outputs:
  """The logits of tokens 0 .. n - 1, one output each."""
  return logits_of(range(n))


def logits_of(tokens: Sequence[int]) -> Outputs:
  """The logits of some tokens, one output each."""
  return Outputs(
    np.array(tokens, np.int32), np.eye(len(tokens), dtype=np.float32)
  )


def margin(plus: list[int], minus: list[int]) -> Outputs:
  """One output: the sum of some logits less that of others."""
  signs = np.repeat([1.0, -1.0], [len(plus), len(minus)]).astype(np.float32)
  return Outputs(np.array([*plus, *minus], np.int32), signs[None])


def outputs_under(
  model: LoadedModel,
  tokens: np.ndarray,
  outputs: Outputs,
  edits: Edits = Edits(),
  *,
  lengths: np.ndarray | None = None,
  every_position: bool = False,
  examples: int = 64,
) -> np.ndarray:
  """The outputs while a forward is edited.

  Args:
    model: from `load_model`, or one that was just trained.
    tokens: `[example, pos]` ids, padded on the right.
    outputs: of the task.
    edits: of sites with the axes batch and position; with `every_position`
      they hold everywhere, otherwise at the last position only.
    lengths: `[example]`, in tokens; None means the full width.
    every_position: whether all positions are asked, or the last.
    examples: at once.

  Returns:
    `[example, outputs]`, or `[example, pos, outputs]` of every position.
  """
  tokens, lengths = check_prompts(model.config, tokens, lengths)
  found, examples = [], min(examples, len(tokens))
  with jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(tokens), examples):
      values = _outputs(
        model.model, model.params, tokens[index], lengths[index], outputs,
        edits, every=every_position,
      )  # fmt: skip
      found.append(np.asarray(values)[: place.stop - place.start])
  return np.concatenate(found)


@functools.partial(fast_jit, static_argnames=("model", "every"))
def _outputs(model, params, tokens, lengths, outputs, edits, *, every):
  valid = jnp.arange(tokens.shape[1])[None] < lengths[:, None]
  if not every:
    last = (lengths - 1)[:, None]
    here = jnp.arange(tokens.shape[1])[None] == last
    edits = only_where(edits, here)
  resid, _ = run(model, params, tokens, edits, key_valid=valid)
  if not every:
    resid = jnp.take_along_axis(resid, last[..., None], axis=1)[:, 0]
  return outputs(model, params, resid)
