"""How much of a patch of one head reaches what a later head reads?

Patching head i moves the stream by delta_i = dz_i W_O, dz_i being the
difference of its outputs on the two prompts. The leakage into a later head's
folded read space is the share of the energy of delta_i, pooled over examples
and positions, that lies in it. One d_head x d_head matrix for each patched head
is enough to know it for every reader, so a measurement costs little more than
its two forwards.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.geometry import energy
from headjax.interventions.pooling import pooled
from headjax.interventions.questions import Batch
from headjax.interventions.record import record
from headjax.models import spaces, weights
from headjax.models.compiling import fast_jit
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder, run
from headjax.models.load import LoadedModel
from headjax.models.sites import Edit, Edits


class WriteError(NamedTuple):
  """How far a patched output is from the clean one plus the change.

  Attributes:
    largest: the largest difference, in units of the stream.
    relative: the same over the largest attention output.
  """

  largest: float
  relative: float


class Leakage(NamedTuple):
  """Shares of energy from every head to every later one.

  Attributes:
    share: `[..., input, source_layer, source_head, layer, head]`, measured,
      led by the axes of the covariances if they are several; NaN for heads
      that are not later and for sources that change nothing.
    isotropic: of the last five axes, for changes spread evenly over the write
      space: PK divided by its dimension.
  """

  share: np.ndarray
  isotropic: np.ndarray


def check_additive(config: ModelConfig) -> None:
  """Fails where a head's write is not what the stream gains from it."""
  normed = "the stream" if config.norms_stream else "the attention output"
  check(
    config.norm_at == "input",
    "model",
    f"a norm of {normed}",
    "heads that write into the stream themselves",
    "measure total responses: behind that norm no head has a change of its own",
  )


def change_covariance(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  examples: int = 64,
  progress: bool = False,
) -> np.ndarray:
  """The sum over examples and positions of dz^T dz, for every head.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts.
    examples: at once.
    progress: whether to show a progress bar.

  Returns:
    `[layer, head, d_head, d_head]` float64.

  Raises:
    ValueError: the model cannot run the pairs.
  """
  return pooled(
    _change_covariance, model, pairs, examples=examples, progress=progress
  )


def leakage(model: LoadedModel, covariance: np.ndarray) -> Leakage:
  """How much of each head's changes every later head can read.

  Nearly all of the work depends on the weights alone: ask for all tasks or
  splits of a model in one call.

  Args:
    model: from `load_model`.
    covariance: `[..., layer, head, d_head, d_head]` of the changes, from
      `change_covariance`, or several of them stacked.

  Returns:
    The shares; inputs in the order of `spaces.inputs`.

  Raises:
    ValueError: the model norms its attention output.

  Source: paper A, section 3 (L) and its isotropic expectation.
  """
  config, params = model.config, model.params
  check_additive(config)
  W_O = weights.per_query_head(params, config, "W_O")
  with np.errstate(invalid="ignore", divide="ignore"):
    unit = covariance / energy.energy(W_O, covariance)[..., None, None]
  even = energy.isotropic_covariance(W_O)
  forms = np.stack([*unit.reshape(-1, *even.shape), even], axis=1)
  found = np.stack(
    [_received(params, config, x, W_O, forms) for x in spaces.inputs(config)], 1
  )
  return Leakage(
    found[:-1].reshape(*unit.shape[:-4], *found.shape[1:]), found[-1]
  )


def _received(params, config, letter, W_O, forms) -> np.ndarray:
  """`[n, source_layer, source_head, layer, head]` for `[layer, n, head]`.

  A pair of layers at a time: memory does not grow with the pairs of heads.
  """
  shared = config.group_size if letter in "KV" else 1  # query heads by reader
  read = spaces.read_spaces(
    params, config, letter, folded=True,
    basis=lambda maps: energy.gram_basis(maps[:, ::shared]),
  )  # fmt: skip
  writers = list(zip(W_O, jnp.asarray(forms, W_O.dtype), strict=True))
  n_layers, n_heads = W_O.shape[:2]
  shares = {}
  for layer in range(1, n_layers):
    rows = read.columns[layer].mT
    for source in range(layer):
      shares[source, layer] = energy.received(*writers[source], rows)
  found = np.full((forms.shape[1], *2 * (n_layers, n_heads)), np.nan)
  for (source, layer), share in shares.items():
    found[:, source, :, layer] = np.repeat(share, shared, axis=-1)
  return found


def write_error(
  model: LoadedModel, pairs: PromptPairs, *, examples: int = 4
) -> WriteError:
  """Is the patched attention output the clean one plus dz W_O?

  Checked in full forwards, for one head of each layer: head l % H of layer l.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts, of which the first are used.
    examples: how many.

  Raises:
    ValueError: the difference is more than rounding explains.
  """
  check_additive(model.config)
  few = pairs.select(slice(examples))
  error, size = _write_error(
    model.model, model.params, few.clean, few.reference,
    np.arange(few.clean.shape[1]) < few.lengths[:, None],
  )  # fmt: skip
  bound = 200 * float(jnp.finfo(size.dtype).eps) * float(size)
  check(
    float(error) <= bound,
    "patched attention output",
    f"clean plus the head's change, up to {float(error):.1e}",
    f"equal up to {bound:.1e}",
    "report it: the model's heads do not write additively",
  )
  return WriteError(float(error), float(error / size))


def both_prompts(batch: Batch) -> tuple[jax.Array, jax.Array]:
  """Tokens and valid keys of both prompts as one batch, in turn.

  Its wider products are faster than those of two.
  """
  both = jnp.stack([batch.clean, batch.reference], axis=1)
  key_valid = jnp.repeat(batch.key_valid, 2, axis=0)
  return both.reshape(key_valid.shape), key_valid


@functools.partial(fast_jit, static_argnames=("model",))
def _change_covariance(model: Decoder, params: Any, batch: Batch) -> jax.Array:
  tokens, key_valid = both_prompts(batch)
  seen = record(model, params, tokens, key_valid=key_valid)
  z = seen.z.reshape(len(seen.z), -1, 2, *seen.z.shape[2:])
  dz = z[:, :, 1] - z[:, :, 0]
  dz = jnp.where(batch.key_valid[None, :, :, None, None], dz, 0)
  return jnp.einsum("lbphe,lbphf->lhef", dz, dz)


@functools.partial(fast_jit, static_argnames=("model",))
def _write_error(model, params, clean_tokens, reference, key_valid):
  """The largest error, and the largest attention output."""
  config = model.config
  _, clean = run(model, params, clean_tokens, key_valid=key_valid)
  _, other = run(model, params, reference, key_valid=key_valid)
  W_O = weights.per_query_head(params, config, "W_O")

  def of_layer(layer):
    head = layer % config.n_heads
    gate = jnp.zeros((config.n_layers, 1, 1, config.n_heads, 1), other.z.dtype)
    edits = Edits(z=(Edit(gate.at[layer, :, :, head].set(1), other.z),))
    _, patched = run(model, params, clean_tokens, edits, key_valid=key_valid)
    delta = (other.z - clean.z)[layer, :, :, head] @ W_O[layer, head]
    moved = patched.attn_out[layer] - clean.attn_out[layer]
    error = jnp.where(key_valid[:, :, None], jnp.abs(moved - delta), 0)
    return error.max()

  errors = jax.lax.map(of_layer, jnp.arange(config.n_layers))
  return errors.max(), jnp.abs(clean.attn_out).max()
