"""How is an intervention written? Builders that return plain `Edits`.

Each builder edits one site and returns an ordinary pytree; `combine` puts
several together. Which layers, positions and heads take part is the gate's
affair: `head_gates` has one gate per head, for sweeps.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check, check_choice
from headjax.models.config import ModelConfig
from headjax.models.sites import SITES, Edit, Edits, LinearEdit

HEAD_AXIS = {"q": 3, "k": 3, "v": 3, "z": 3, "scores": 2, "pattern": 2}


def head_gates(config: ModelConfig, site: str = "z") -> jax.Array:
  """One gate per head: open at that head, closed elsewhere.

  Args:
    config: of the model.
    site: a site with a head axis.

  Returns:
    `[n_layers * n_heads, layer, 1, ...]` in layer-major order, shaped to
    broadcast against the site.

  Raises:
    ValueError: a site without a head axis.
  """
  check_choice("site", site, HEAD_AXIS)
  n_layers, n_heads = config.n_layers, config.n_heads
  eye = np.eye(n_layers * n_heads, dtype=np.float32)
  shape = [n_layers * n_heads, n_layers, 1, 1, 1, 1]
  shape[1 + HEAD_AXIS[site]] = n_heads
  return jnp.asarray(eye.reshape(shape))


def patch_from(site: str, value: jax.Array, gate: Any = 1.0) -> Edits:
  """Replaces a site by given values, for instance those of another run.

  Args:
    site: name of the site.
    value: `[layer, ...]`, broadcasts against the site; finite.
    gate: a number in [0, 1], or `[layer, ...]` that broadcasts.

  Returns:
    Edits of that site.

  Raises:
    ValueError: an unknown site, a value that is not finite, or a gate outside
      [0, 1].
  """
  value = jnp.asarray(value)
  check(
    bool(jnp.isfinite(value).all()),
    f"value of {site}",
    "NaN or infinity",
    "finite values",
    "check the run that they come from",
  )
  return _edits(site, Edit(_gate(site, gate, value), value))


def zero(config: ModelConfig, site: str, gate: Any = 1.0) -> Edits:
  """Zero ablation of a site.

  Args:
    config: of the model.
    site: name of the site.
    gate: as in `patch_from`: what is ablated.

  Returns:
    Edits of that site.
  """
  n_axes = 4 if site in HEAD_AXIS else 3
  return patch_from(site, jnp.zeros((config.n_layers,) + (1,) * n_axes), gate)


def mean(
  site: str,
  activation: jax.Array,
  gate: Any = 1.0,
  *,
  valid: jax.Array | None = None,
) -> Edits:
  """Mean ablation: a site's average over examples and positions.

  Args:
    site: a site with `[batch, pos]` as its first axes.
    activation: `[layer, batch, pos, ...]`, recorded at that site.
    gate: as in `patch_from`.
    valid: `[batch, pos]` bool, the positions to average over; default all.

  Returns:
    Edits of that site.

  Raises:
    ValueError: a site without these axes, or as in `patch_from`.
  """
  check_choice("site", site, set(SITES) - {"pattern", "scores"})
  weight = jnp.ones(activation.shape[1:3]) if valid is None else valid
  weight = (weight / weight.sum()).astype(activation.dtype)
  average = jnp.einsum("lbp...,bp->l...", activation, weight)
  return patch_from(site, average[:, None, None], gate)


def resample(
  site: str, activation: jax.Array, key: jax.Array, gate: Any = 1.0
) -> Edits:
  """Resample ablation: every example takes the site of another one.

  Args:
    site: name of the site.
    activation: `[layer, batch, ...]` with at least two examples.
    key: a `jax.random.key`, a scalar.
    gate: as in `patch_from`.

  Returns:
    Edits of that site.

  Raises:
    ValueError: fewer than two examples, or as in `patch_from`.
  """
  batch = activation.shape[1]
  check(
    batch >= 2,
    "activation",
    f"{batch} example",
    "at least 2",
    "record more examples to resample from",
  )
  # A random cyclic order: nobody is resampled from itself.
  order = jax.random.permutation(key, batch)
  source = jnp.zeros(batch, int).at[order].set(jnp.roll(order, 1))
  return patch_from(site, activation[:, source], gate)


def project_out(site: str, basis: jax.Array, gate: Any = 1.0) -> Edits:
  """Removes a subspace from a site: `x - Q Q^T x`.

  Args:
    site: name of the site.
    basis: `[layer, ..., d, k]`, whose columns are orthonormal; the axes in
      between broadcast against the site's, for instance `[layer, head, d, k]`.
    gate: as in `patch_from`.

  Returns:
    Edits of that site.

  Raises:
    ValueError: columns that are not orthonormal, to 1e-4.
  """
  gram = jnp.einsum("...dk,...dj->...kj", basis, basis)
  error = float(np.abs(np.asarray(gram) - np.eye(basis.shape[-1])).max())
  check(
    error < 1e-4,
    f"basis of {site}",
    f"columns whose Gram matrix is off the identity by {error:.1e}",
    "orthonormal columns",
    "orthonormalise them (for instance by a QR decomposition)",
  )
  matrix = -jnp.einsum("...dk,...ek->...de", basis, basis)
  return _edits(site, LinearEdit(_gate(site, gate, matrix), matrix))


def combine(*edits: Edits) -> Edits:
  """All edits together; those of one site apply in the order given."""
  fields = {site: () for site in SITES}
  for one in edits:
    for site in SITES:
      fields[site] += getattr(one, site)
  return Edits(**fields)


def _edits(site: str, edit: Edit | LinearEdit) -> Edits:
  check_choice("site", site, SITES)
  return dataclasses.replace(Edits(), **{site: (edit,)})


def _gate(site: str, gate: Any, value: jax.Array) -> jax.Array:
  gate = jnp.asarray(gate, value.dtype)
  inside = bool(((gate >= 0) & (gate <= 1)).all())
  check(inside, "gate", "values outside [0, 1]", "0 to 1", "rescale the gate")
  if gate.ndim:
    return gate
  n_axes = 5 if site in HEAD_AXIS else 4
  return jnp.full((value.shape[0],) + (1,) * (n_axes - 1), gate)
