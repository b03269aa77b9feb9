"""Which directions of a model's activations carry a task? H, J and the core.

H are the activations of a site, J the derivatives of chosen logits with respect
to them, at the same position, all later layers responding. A derivative is
that in nothing, added to the site: one backward pass an output gives it for
all layers at once.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check
from headjax.geometry.cores import Core, Moments
from headjax.interventions import chunks
from headjax.interventions.projections import adding, only_where
from headjax.interventions.sweep import PRECISION
from headjax.models.compiling import fast_jit
from headjax.models.decoder import run
from headjax.models.layers import wide
from headjax.models.load import LoadedModel
from headjax.models.prompts import check_prompts
from headjax.models.sites import Edits
from headjax.studies.cores.activations import check_site, portions
from headjax.studies.cores.outputs import Outputs


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
  sums = None
  for H, valid in portions(
    model, tokens, lengths, site, every_position, examples
  ):
    sums = sums or [Moments(H.shape[-1]) for _ in range(config.n_layers)]
    for one, layer in zip(sums, H, strict=True):
      one.add_activations(layer[valid])
  with jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(rows), min(examples, len(tokens))):
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


@functools.partial(fast_jit, static_argnames=("model", "site"))
def _derivatives(model, params, tokens, lengths, at, outputs, *, site):
  """`[layer, batch, outputs, d]`."""
  config, line = model.config, jnp.arange(tokens.shape[1])[None]
  valid, here = line < lengths[:, None], line == at[:, None]
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
