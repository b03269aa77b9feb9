"""Which directions of a model's activations carry a task? H, J and the core.

H are the activations of a site, J the derivatives of chosen logits with respect
to them, at the same position, all later layers responding. A derivative is
that in nothing, added to the site: one backward pass an output gives it for
all layers at once.
"""

import dataclasses
import functools
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check, check_choice
from headjax.geometry.cores import Core, Moments
from headjax.interventions import chunks
from headjax.interventions.projections import adding, only_where
from headjax.interventions.sweep import PRECISION
from headjax.models.compiling import fast_jit
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder, run, unembed_tokens
from headjax.models.layers import wide
from headjax.models.load import LoadedModel
from headjax.models.prompts import check_prompts
from headjax.models.sites import Edits, available

SITES = (
  "attn_out", "k", "mlp_out", "q", "resid_mid", "resid_post", "resid_pre", "v",
  "z",
)  # fmt: skip


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
  return Outputs(np.arange(n, dtype=np.int32), np.eye(n, dtype=np.float32))


def margin(plus: list[int], minus: list[int]) -> Outputs:
  """One output: the sum of some logits less that of others."""
  signs = np.repeat([1.0, -1.0], [len(plus), len(minus)]).astype(np.float32)
  return Outputs(np.array([*plus, *minus], np.int32), signs[None])


@dataclasses.dataclass(frozen=True, eq=False)
class Extracted:
  """The core of one site of one layer, and what it came from.

  Attributes:
    core: its directions.
    mean: `[d]`, of the activations.
    covariance: `[d, d]`, of the activations.
    n: activations.
    n_jacobians: samples whose derivatives entered.
  """

  core: Core
  mean: np.ndarray
  covariance: np.ndarray
  n: int
  n_jacobians: int


def extract(
  model: LoadedModel,
  tokens: np.ndarray,
  outputs: Outputs,
  *,
  site: str = "resid_post",
  lengths: np.ndarray | None = None,
  every_position: bool = False,
  jacobians: int | None = None,
  examples: int = 64,
  seed: int = 0,
) -> list[Extracted]:
  """The core of a site, in every layer.

  Args:
    model: from `load_model`, or one that was just trained.
    tokens: `[example, pos]` ids, padded on the right.
    outputs: of the task.
    site: whose activations; those of heads are laid side by side.
    lengths: `[example]`, in tokens; None means the full width.
    every_position: whether all positions of a prompt are samples, or the last.
    jacobians: samples whose derivatives are taken, drawn at random; None means
      one an example.
    examples: at once.
    seed: of that draw.

  Returns:
    One for each layer.

  Raises:
    ValueError: the model has no such site or cannot run the tokens.
  """
  config = model.config
  check_site(config, site)
  tokens, lengths = check_prompts(config, tokens, lengths)
  rows, at = _samples(lengths, every_position, jacobians, seed)
  examples = min(examples, len(tokens))
  sums = None
  with jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(tokens), examples):
      H, valid = _activations(
        model.model, model.params, tokens[index], lengths[index], site=site,
        every=every_position,
      )  # fmt: skip
      size = place.stop - place.start
      H, valid = np.asarray(H)[:, :size], np.asarray(valid)[:size]
      sums = sums or [Moments(H.shape[-1]) for _ in range(config.n_layers)]
      for one, layer in zip(sums, H, strict=True):
        one.add_activations(layer[valid])
    for index, place in chunks.slices(len(rows), examples):
      some = rows[index]
      J = _derivatives(
        model.model, model.params, tokens[some], lengths[some], at[index],
        outputs, site=site,
      )  # fmt: skip
      for one, layer in zip(sums, np.asarray(J), strict=True):
        one.add_jacobians(layer[: place.stop - place.start])
  return [
    Extracted(x.core(), x.mean, x.covariance, x.n, x.n_jacobians) for x in sums
  ]


def activations(
  model: LoadedModel,
  tokens: np.ndarray,
  layer: int,
  *,
  site: str = "resid_post",
  lengths: np.ndarray | None = None,
  every_position: bool = False,
  examples: int = 64,
) -> np.ndarray:
  """`[n, d]` activations of one layer; arguments as in `extract`.

  Rows are those of valid positions, example after example.
  """
  check_site(model.config, site)
  check_choice("layer", layer, range(model.config.n_layers))
  tokens, lengths = check_prompts(model.config, tokens, lengths)
  found, examples = [], min(examples, len(tokens))
  with jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(tokens), examples):
      H, valid = _activations(
        model.model, model.params, tokens[index], lengths[index], site=site,
        every=every_position,
      )  # fmt: skip
      size = place.stop - place.start
      found.append(np.asarray(H[layer])[:size][np.asarray(valid)[:size]])
  return np.concatenate(found).astype(np.float64)


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


def check_site(config: ModelConfig, site: str) -> None:
  """Fails unless a model has a site, with a vector at every position."""
  check_choice("site", site, SITES)
  why = available(config)[site]
  check(
    not why, "site", f"{site}, {why}", "one that there is", "choose another"
  )


def _samples(lengths, every_position, jacobians, seed):
  """Examples and positions whose derivatives are taken."""
  rng = np.random.default_rng(seed)
  n = len(lengths)
  wanted = n if jacobians is None else jacobians
  check(
    1 <= wanted <= n,
    "jacobians",
    wanted,
    f"1 to {n}, the examples",
    "take fewer, or more examples",
  )
  rows = np.sort(rng.permutation(n)[:wanted])
  last = lengths[rows] - 1
  return rows, rng.integers(0, last + 1) if every_position else last


def _mask(tokens, lengths):
  return jnp.arange(tokens.shape[1])[None] < lengths[:, None]


@functools.partial(fast_jit, static_argnames=("model", "site", "every"))
def _activations(model, params, tokens, lengths, *, site, every):
  """`[layer, batch, pos, d]` and the valid ones; of the last, pos is 1."""
  valid = _mask(tokens, lengths)
  _, acts = run(model, params, tokens, key_valid=valid)
  H = getattr(acts, site)
  H = H.reshape(*H.shape[:3], -1).astype(wide(H.dtype))
  if every:
    return H, valid
  last = (lengths - 1)[None, :, None, None]
  return jnp.take_along_axis(H, last, axis=2), valid[:, :1]


@functools.partial(fast_jit, static_argnames=("model", "site"))
def _derivatives(model, params, tokens, lengths, at, outputs, *, site):
  """`[layer, batch, outputs, d]`."""
  config, valid = model.config, _mask(tokens, lengths)
  here = jnp.arange(tokens.shape[1])[None] == at[:, None]
  heads = site in ("q", "k", "v", "z")
  key = config.d_key if site in ("q", "k") else config.d_head
  tail = (config.n_heads, key) if heads else (config.d_model,)
  dtype = params["embed"]["W_E"].dtype
  nothing = jnp.zeros((config.n_layers, *tokens.shape[:1], 1, *tail), dtype)
  gate = jnp.ones((config.n_layers,) + (1,) * (2 + len(tail)), dtype)

  def value(added):
    edits = only_where(Edits(**{site: adding(gate, added)}), here)
    resid, _ = run(model, params, tokens, edits, key_valid=valid)
    asked = jnp.take_along_axis(resid, at[:, None, None], axis=1)[:, 0]
    return outputs(model, params, asked)

  found, pull = jax.vjp(value, nothing)
  # Examples do not meet: one backward pass serves them all.
  ones = jnp.eye(found.shape[-1], dtype=found.dtype)
  J = jax.lax.map(lambda one: pull(jnp.broadcast_to(one, found.shape))[0], ones)
  J = J.reshape(*J.shape[:3], -1).astype(wide(dtype))
  return jnp.moveaxis(J, 0, 2)


@functools.partial(fast_jit, static_argnames=("model", "every"))
def _outputs(model, params, tokens, lengths, outputs, edits, *, every):
  valid = _mask(tokens, lengths)
  if not every:
    last = (lengths - 1)[:, None]
    here = jnp.arange(tokens.shape[1])[None] == last
    edits = only_where(edits, here)
  resid, _ = run(model, params, tokens, edits, key_valid=valid)
  if not every:
    resid = jnp.take_along_axis(resid, last[..., None], axis=1)[:, 0]
  return outputs(model, params, resid)
