"""How much worse does a model predict text without some heads? Their losses.

The same measure serves any text: all tokens of it, or only the answers of
prompts.
"""

import functools
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from headjax import results
from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks
from headjax.interventions.sweep import PRECISION
from headjax.models.compiling import fast_jit
from headjax.models.decoder import Decoder, run, unembed
from headjax.models.layers import wide
from headjax.models.load import LoadedModel
from headjax.models.prompts import check_prompts
from headjax.models.sites import Edit, Edits


def lesion_losses(
  model: LoadedModel,
  tokens: np.ndarray,
  groups,
  *,
  lengths=None,
  counted=None,
  name: str = "text",
  examples: int = 16,
) -> xr.Dataset:
  """The mean loss of each text without each group of heads.

  Args:
    model: from `load_model`.
    tokens: `[example, pos]` ids, padded on the right.
    groups: `[group, layer, head]` bool, replaced by zero at all tokens.
    lengths: `[example]` in tokens, 2 or more; None means the full width.
    counted: `[example, pos]` bool, the tokens whose prediction counts, of
      which the first token of a text is never one; None: all others.
    name: of the texts, for the provenance.
    examples: at once.

  Returns:
    A dataset with `lesioned[example, group_of_heads]` and `base[example]`, in
    nats a token.

  Raises:
    ValueError: tokens that the model cannot run, groups that do not fit it, or
      a text of which nothing counts.

  Source: paper C, generic importance.
  """
  config = model.config
  tokens, lengths = check_prompts(config, tokens, lengths)
  groups = np.asarray(groups)
  heads = config.n_layers, config.n_heads
  check(
    groups.dtype == bool and groups.ndim == 3 and groups.shape[1:] == heads,
    "groups",
    f"{groups.dtype} of shape {groups.shape}",
    f"bool [group, {heads[0]}, {heads[1]}]",
    "mark the heads of each group",
  )
  valid = np.arange(tokens.shape[1]) < lengths[:, None]
  counted = valid if counted is None else valid & np.asarray(counted)
  counted = counted & (np.arange(tokens.shape[1]) > 0)
  check(
    bool(counted.any(axis=1).all()),
    "counted",
    f"text {int(counted.any(axis=1).argmin())} of which nothing counts",
    "a token after the first in every text",
    "leave it out",
  )
  began = time.perf_counter()
  dtype = jax.tree.leaves(model.params)[0].dtype
  gates = np.concatenate([np.zeros_like(groups[:1]), groups]).astype(dtype)
  found = np.zeros((len(tokens), len(gates)))
  size = min(examples, len(tokens))
  with jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(tokens), size):
      values = _losses(
        model.model, model.params, tokens[index], valid[index],
        counted[index], gates,
      )  # fmt: skip
      found[place] = np.asarray(values).T[: place.stop - place.start]
  about = {"long_name": "mean loss of the counted tokens", "units": "nats"}
  return xr.Dataset(
    {
      "lesioned": (("example", "group_of_heads"), found[:, 1:], about),
      "base": ("example", found[:, 0], about),
    },
    attrs=results.provenance(
      model=model,
      # Only the tokens are of interest here.
      pairs=PromptPairs(tokens, tokens, *tokens.T[[0, 0]], lengths, name=name),
      wall_s=time.perf_counter() - began,
      chunk=size,
      method="lesion losses",
      site="z",
      position="all",
      ablation="zero",
    ),
  )


def answered(pairs: PromptPairs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Prompts with their answers, and that only these count.

  Returns:
    Tokens `[example, pos]`, lengths `[example]` and counted `[example, pos]`,
    as `lesion_losses` takes them.
  """
  tokens = np.pad(pairs.clean, ((0, 0), (0, 1)))
  tokens[np.arange(len(pairs)), pairs.lengths] = pairs.answer
  counted = np.arange(tokens.shape[1]) == pairs.lengths[:, None]
  return tokens, pairs.lengths + 1, counted


@functools.partial(fast_jit, static_argnames=("model",))
def _losses(model: Decoder, params: Any, tokens, valid, counted, gates):
  """`[gate, batch]`; one gate and one text's logits in memory at a time."""
  zero = jnp.zeros((gates.shape[1], 1, 1, 1, 1), gates.dtype)

  def of_text(text):
    resid, targets, weight = text
    logits = unembed(model, params, resid[:-1])
    logits = logits.astype(wide(logits.dtype))
    chosen = jnp.take_along_axis(logits, targets[1:, None], axis=-1)[:, 0]
    loss = jax.nn.logsumexp(logits, axis=-1) - chosen
    return (loss * weight[1:]).sum() / weight.sum()

  def of_gate(gate):
    edits = Edits(z=(Edit(gate[:, None, None, :, None], zero),))
    resid, _ = run(model, params, tokens, edits, key_valid=valid)
    return jax.lax.map(of_text, (resid, tokens, counted))

  return jax.lax.map(of_gate, gates)
