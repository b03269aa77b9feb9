"""What does a model do with only a subspace of a site, or without it?

Three projections of an activation x around a centre m, 0 or its mean:

  keep    m + Q Q^T (x - m)      nothing but the subspace is left
  remove  x - Q Q^T (x - m)      the subspace is held at the centre
  flip    x - 2 Q Q^T (x - m)    the subspace is mirrored at the centre

Each is a matrix on x and, around a mean, a constant: both are edits of the
engine, and data, so that all ranks and kinds are one compiled program.
"""

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check, check_choice
from headjax.models.config import ModelConfig
from headjax.models.sites import Edit, Edits, LinearEdit

SITES = ("attn_out", "mlp_out", "resid_mid", "resid_post", "resid_pre")
KINDS = ("flip", "keep", "remove")


def project(
  config: ModelConfig,
  layer: int,
  basis: np.ndarray,
  kind: str,
  *,
  site: str = "resid_post",
  mean: np.ndarray | None = None,
) -> Edits:
  """The edit that projects a site of one layer.

  Args:
    config: of the model.
    layer: whose site it is.
    basis: `[d_model, rank]`, orthonormal columns; rank 0 keeps nothing.
    kind: "keep", "remove" or "flip".
    site: one that is `d_model` wide.
    mean: `[d_model]`, the centre; None means 0.

  Raises:
    ValueError: another site, layer or kind, or a basis that does not fit.
  """
  check_choice("site", site, SITES)
  check_choice("kind", kind, KINDS)
  check_choice("layer", layer, range(config.n_layers))
  basis = np.asarray(basis, np.float64)
  _check_basis(config.d_model, basis)
  onto = basis @ basis.T
  change = {
    "keep": onto - np.eye(len(onto)),
    "remove": -onto,
    "flip": -2 * onto,
  }
  matrix = change[kind]
  gate = _stacked(config, layer, np.ones((1, 1, 1)))
  edits = (LinearEdit(gate, _stacked(config, layer, matrix)),)
  if mean is not None:
    constant = _stacked(config, layer, -np.asarray(mean) @ matrix)
    edits += adding(gate, constant[:, None, None])
  return Edits(**{site: edits})


def add(
  config: ModelConfig,
  layer: int,
  direction: np.ndarray,
  *,
  site: str = "resid_post",
) -> Edits:
  """The edit that adds a vector to a site of one layer.

  Args:
    config: of the model.
    layer: whose site it is.
    direction: `[d_model]`.
    site: one that is `d_model` wide.
  """
  check_choice("site", site, SITES)
  check_choice("layer", layer, range(config.n_layers))
  value = _stacked(config, layer, direction)[:, None, None]
  gate = _stacked(config, layer, np.ones((1, 1, 1)))
  return Edits(**{site: adding(gate, value)})


def adding(gate, value) -> tuple[Edit, Edit]:
  """Two edits that add `value` where the gate is 1, exactly.

  An edit blends: first x becomes 2 x, then halfway to twice the value.

  Args:
    gate: `[layer, ...]` of zeros and ones.
    value: `[layer, ...]`, in the site's axes.
  """
  nothing = jnp.zeros((gate.shape[0],) + (1,) * (value.ndim - 1), value.dtype)
  return Edit(-gate, nothing), Edit(gate / 2, 2 * value)


def _stacked(config: ModelConfig, layer: int, array: np.ndarray):
  """The array at its layer, zeros elsewhere."""
  found = np.zeros((config.n_layers, *np.shape(array)))
  found[layer] = array
  return jnp.asarray(found)


def only_where(edits: Edits, mask: jax.Array) -> Edits:
  """The same edits, at some positions only; traceable.

  Args:
    edits: of sites with the axes batch and position.
    mask: `[batch, pos]` bool.
  """

  def one(edit):
    shape = (1, *mask.shape) + (1,) * (edit.gate.ndim - 3)
    return edit.replace(gate=edit.gate * mask.reshape(shape))

  return jax.tree.map(
    one, edits, is_leaf=lambda node: isinstance(node, Edit | LinearEdit)
  )


def _check_basis(d: int, basis: np.ndarray) -> None:
  fits = basis.ndim == 2 and len(basis) == d
  error = (
    np.abs(basis.T @ basis - np.eye(basis.shape[1])).max(initial=0)
    if fits
    else np.inf
  )
  check(
    error < 1e-6,
    "basis",
    f"shape {basis.shape}, off orthonormal by {error:.1e}",
    f"orthonormal columns [{d}, rank]",
    "pass the span of a core",
  )
