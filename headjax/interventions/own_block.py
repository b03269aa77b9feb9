"""What does a head do with what lies in its own space? Its scalar part.

A head that writes g Q, with the orthonormal rows Q of a frozen design, has the
own-block value map M = Q W_V: how its values take up its own space. The scalar
part of M is s I with s = tr M / w, over the w coordinates that are written. It
is taken out of the value weights themselves; a random orthogonal matrix in
place of I makes an edit of the same norm.
"""

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from headjax.checks import check
from headjax.models import weights
from headjax.models.load import LoadedModel


def scalars(model: LoadedModel) -> np.ndarray:
  """The scalar s of every head.

  Args:
    model: with frozen writes and values that read the whole stream.

  Returns:
    `[layer, head]` float64, in units of W_V.

  Raises:
    ValueError: another model.
  """
  Q, W_V = _own_space(model), _values(model)
  width = Q.shape[2]
  return np.einsum("lhwd,ldhw->lh", Q, W_V[..., :width]) / width


def without_scalar_part(
  model: LoadedModel,
  layers: Sequence[int],
  instead: np.ndarray | None = None,
) -> LoadedModel:
  """The model without s I in some layers, or without s R.

  Args:
    model: as in `scalars`.
    layers: whose heads are edited, all of them.
    instead: R `[layer, head, w, w]` of all layers; None means I.

  Returns:
    A model that shares all weights but W_V.

  Raises:
    ValueError: another model, or layers that it has not.
  """
  n_layers = model.config.n_layers
  outside = sorted(set(layers) - set(range(n_layers)))
  check(
    bool(layers) and not outside,
    "layers",
    outside or "none",
    f"some of 0 to {n_layers - 1}",
    "choose layers of this model",
  )
  Q, s = _own_space(model), scalars(model)
  edited = np.isin(np.arange(n_layers), layers)
  part = (s * edited[:, None])[..., None, None] * Q
  if instead is not None:
    part = np.einsum("lhwd,lhwv->lhvd", part, instead)
  W_V = _values(model).copy()
  W_V[..., : Q.shape[2]] -= part.transpose(0, 3, 1, 2)
  dtype = weights.get(model.params, "W_V").dtype
  params = weights.replaced(model.params, {"W_V": jnp.asarray(W_V, dtype)})
  return dataclasses.replace(model, params=params, name=f"{model.name}, edited")


def random_orthogonal(model: LoadedModel, seed: int) -> np.ndarray:
  """One evenly distributed orthogonal matrix a head.

  Args:
    model: as in `scalars`.
    seed: of the matrices.

  Returns:
    `[layer, head, w, w]`.
  """
  config = model.config
  width = _own_space(model).shape[2]
  shape = (config.n_layers, config.n_heads, width, width)
  q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=shape))
  return q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]


def _own_space(model: LoadedModel) -> np.ndarray:
  """Q `[layer, head, w, d_model]`, and the refusals."""
  config = model.config
  write = config.write
  check(
    write.frozen and "V" not in config.read.blocks and config.group_size == 1,
    "model",
    f"{write.kind} writes, values that read "
    f"{'a block' if 'V' in config.read.blocks else 'the whole stream'}, "
    f"{config.group_size} heads to each value head",
    "frozen writes, and values of each head's own that read the whole stream",
    "train a row of configs/geometry.py with a frozen write and free readers",
  )
  dense = write.dense(config.sizes)
  return dense[:, :, : write.live or config.d_head] / write.scale


def _values(model: LoadedModel) -> np.ndarray:
  """W_V as stored, float64."""
  return np.asarray(weights.get(model.params, "W_V"), np.float64)
