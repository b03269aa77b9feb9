"""Do few directions of a layer's attention carry its effect? One at a time.

At the answer, one coordinate of the attention output (after W_O), or one of a
head's output (before W_O), takes its value on the reference prompt. Only the
answer's row changes, so each direction costs the later layers of one row, with
the clean keys and values of all other positions. Before W_O, the coordinates
of each head may be turned: what then differs is the basis and nothing else.
"""

import time

import jax
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from headjax import results
from headjax.checks import check, check_choice
from headjax.data.pairs import PromptPairs
from headjax.interventions import answer_row, chunks
from headjax.interventions.questions import batch_of, check_pairs
from headjax.interventions.sweep import PRECISION
from headjax.models.load import LoadedModel

SITES = ("attn_out", "z")
ROWS = 4096  # of one call: directions times examples


def patch_directions(
  model: LoadedModel,
  pairs: PromptPairs,
  layer: int,
  *,
  site: str = "attn_out",
  basis: np.ndarray | None = None,
  examples: int = 32,
  progress: bool = False,
) -> xr.Dataset:
  """Replaces every coordinate at a layer's answer position, each alone.

  Args:
    model: from `load_model`; causal.
    pairs: clean and reference prompts.
    layer: whose attention is patched.
    site: "attn_out", what the stream gains, or "z", the heads' outputs.
    basis: `[head, d_head, d_head]`, whose columns are the directions within
      each head's z, orthonormal; None means the coordinates as they are.
    examples: at once.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `effect[example, direction]` in logits, clean minus patched,
    and `base[example]`. Directions of z are head-major.

  Raises:
    ValueError: an unknown site or layer, a basis that is not orthonormal or
      not of z, a model that is not causal, or prompts that it cannot run.
  """
  config = model.config
  _check(model, layer, site, basis)
  check_pairs(config, pairs)
  began = time.perf_counter()
  if site == "z" and basis is None:
    basis = np.broadcast_to(np.eye(config.d_head), _shape(config))
  n = config.d_model if site == "attn_out" else config.n_heads * config.d_head
  n_devices = min(jax.local_device_count(), len(pairs))
  examples = -(-min(examples, len(pairs)) // n_devices) * n_devices
  params = chunks.replicate(model.params, n_devices)
  effect, base = np.zeros((len(pairs), n)), np.zeros(len(pairs))
  bar = tqdm(total=len(pairs) * n, unit="patch", disable=not progress)
  with bar, jax.default_matmul_precision(PRECISION):
    for index, place in chunks.slices(len(pairs), examples):
      batch = chunks.spread(batch_of(pairs, index), n_devices)
      setting = answer_row.prepare(
        model.model, site, params, batch, basis, layer
      )
      size = place.stop - place.start
      for some, _ in chunks.slices(n, min(n, max(1, ROWS // examples))):
        values, found = answer_row.sweep(
          model.model, site, params, batch, setting, layer, some
        )
        base[place] = values[:size]
        effect[place.start : place.stop, some] = np.asarray(found).T[:size]
        bar.update(size * len(set(some)))
  return _labelled(model, pairs, effect, base, began, examples, site, layer)


def rotation(n_heads: int, width: int, seed: int) -> np.ndarray:
  """One random orthogonal matrix, the same within each head.

  Args:
    n_heads: how many heads.
    width: of a head's output.
    seed: of the matrix, which is evenly distributed.

  Returns:
    `[head, width, width]`.
  """
  normal = np.random.default_rng(seed).normal(size=(width, width))
  q, r = np.linalg.qr(normal)
  return np.broadcast_to(q * np.sign(np.diag(r)), (n_heads, width, width))


def _shape(config):
  return config.n_heads, config.d_head, config.d_head


def _check(model: LoadedModel, layer: int, site: str, basis) -> None:
  config = model.config
  check_choice("site", site, SITES)
  check_choice("layer", layer, range(config.n_layers))
  check(
    config.causal,
    "model",
    "attention in both directions",
    "a causal model, where an edit of the answer changes nothing else",
    "patch its coordinates with general_sweep",
  )
  if basis is None:
    return
  fits = site == "z" and np.shape(basis) == _shape(config)
  check(
    fits and np.allclose(basis.mT @ basis, np.eye(config.d_head), atol=1e-5),
    "basis",
    f"shape {np.shape(basis)} at site {site}",
    f"orthonormal columns {_shape(config)} at site z",
    "pass what `rotation` gives, or leave it out",
  )


def _labelled(model, pairs, effect, base, began, examples, site, layer):
  about = {"units": results.LOGITS}
  drop = about | {"long_name": "logit difference, clean minus patched"}
  return xr.Dataset(
    {
      "effect": (("example", "direction"), effect, drop),
      "base": ("example", base, about | {"long_name": "logit difference"}),
    },
    {name: np.arange(n) for name, n in zip(
      ("example", "direction"), effect.shape, strict=True
    )},
    attrs=results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=examples,
      site=site,
      patched_layer=layer,
    ),
  )  # fmt: skip
