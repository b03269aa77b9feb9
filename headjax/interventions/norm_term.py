"""How much does leakage leave out by ignoring what a norm's scale does?

A small change delta of the stream reaches a reader with the linear map A as

  A J delta = (A delta - c A xhat) / sigma,  c = <xhat, delta> / width,

where xhat is the normed stream before its gain and sigma its scale. Leakage
knows A only; the second part depends on the prompt. Its size is compared with
that of the whole, both pooled over examples and positions. A block reader has
a norm of its own over its block, and the same holds in block coordinates.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions.leakage import check_additive
from headjax.interventions.pooling import pooled
from headjax.interventions.questions import Batch
from headjax.interventions.record import record
from headjax.models import spaces, weights
from headjax.models.compiling import fast_jit
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder
from headjax.models.load import LoadedModel


def norm_term(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  examples: int = 16,
  progress: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
  """The part of the readers' first-order response that leakage leaves out.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts.
    examples: at once.
    progress: whether to show a progress bar.

  Returns:
    Two tables `[input, source_layer, source_head, layer, head]` of squares
    summed over examples and positions: |c A xhat / sigma|^2 and |A J delta|^2.
    NaN for heads that are not later.

  Raises:
    ValueError: the model norms its attention output, has no norm, or norms
      the stream by block for all heads.

  Source: paper A, section 3, which did not measure it.
  """
  config = model.config
  check_additive(config)
  check(
    config.norm != "none" and config.read.kind != "block_norm",
    "model",
    "no norm" if config.norm == "none" else "norms by block before full maps",
    "readers with one norm each",
    "the leakage of this model leaves out nothing of this form",
  )
  parts = pooled(_norm_term, model, pairs, examples=examples, progress=progress)
  letters = spaces.inputs(config)
  sites = (config.n_layers, config.n_heads)
  found = np.full((2, len(letters), *sites, *sites), np.nan)
  for letter, sums in parts.items():
    for at, source, layer in zip(sums, *_later(config), strict=True):
      found[:, letters.index(letter), source, :, layer] = at
  return found[0], found[1]


def _later(config: ModelConfig) -> tuple[np.ndarray, np.ndarray]:
  """All pairs of a source layer and a later one."""
  return np.triu_indices(config.n_layers, 1)


@functools.partial(fast_jit, static_argnames=("model",))
def _norm_term(model: Decoder, params: Any, batch: Batch):
  """Input -> `[pair of layers, 2, source_head, head]`."""
  config = model.config
  see = functools.partial(record, model, params, key_valid=batch.key_valid)
  clean = see(batch.clean)
  valid = batch.key_valid[None, :, :, None, None]
  dz = jnp.where(valid, see(batch.reference).z - clean.z, 0)
  W_O = weights.per_query_head(params, config, "W_O")
  found = {}
  for letters in _by_norm(config):
    read = {
      letter: spaces.read_maps(params, config, letter, folded=True)
      for letter in letters
    }
    maps = {letter: found[0] for letter, found in read.items()}
    frames = read[letters[0]][1]

    def one(pair, maps=maps, frames=frames):
      source, layer = pair
      here = {letter: A[layer] for letter, A in maps.items()}
      frame = None if frames is None else frames[layer]
      resid = clean.resid_pre[layer]
      return _sums(config, dz[source], W_O[source], resid, here, frame)

    pairs = tuple(map(jnp.asarray, _later(config)))
    found |= jax.lax.map(one, pairs)
  return found


def _by_norm(config: ModelConfig) -> list[str]:
  """The inputs behind a norm of the whole stream, and behind one of a block."""
  letters, blocks = spaces.inputs(config), config.read.blocks
  split = ["".join(x for x in letters if (x in blocks) == b) for b in (0, 1)]
  return [part for part in split if part]


def _sums(config, dz, W_O, resid, maps, frame):
  """The sums from the heads of a layer to the readers of a later one.

  In the einsums `h` and `j` are heads that write and read, `u` the norm's
  units, one for all readers or (`j` again) one each, `n` their coordinates.
  """
  blocked = frame is not None
  einsum = functools.partial(_einsum, blocked)
  x = resid[:, :, None]
  into = W_O[:, :, None]
  if blocked:
    x = jnp.einsum("bpd,jdn->bpjn", resid, frame)
    into = jnp.einsum("hed,jdn->hejn", W_O, frame)
  if spaces.centres(config):
    x = x - x.mean(-1, keepdims=True)
  square = (x * x).mean(-1, keepdims=True) + config.norm_eps
  xhat, weight = x * jax.lax.rsqrt(square), 1 / square[..., 0]
  c = einsum("bphe,heun,bpun->bphu", dz, into, xhat) / x.shape[-1]
  linear = einsum("bpu,bphe,bphf->huef", weight, dz, dz)
  mixed = einsum("bpu,bphu,bphe,bpun->huen", weight, c, dz, xhat)
  found = {}
  for letter, A in maps.items():
    response = einsum("heun,jnk->hejk", into, A)
    normal = (einsum("bpun,jnk->bpjk", xhat, A) ** 2).sum(-1)
    left_out = einsum("bpu,bphu,bphu,bpj->hj", weight, c, c, normal)
    ignored = einsum("hejk,huef,hfjk->hj", response, linear, response)
    cross = einsum("hejk,huen,jnk->hj", response, mixed, A)
    found[letter] = jnp.stack([left_out, ignored - 2 * cross + left_out])
  return found


def _einsum(blocked: bool, equation: str, *operands):
  return jnp.einsum(equation.replace("u", "j" if blocked else "u"), *operands)
