"""What does a core compute? A linear map from one state to the next.

In a chain, the state moves with time (`dynamics`); in modular addition, the
residue moves by 1 (`cyclic_operator`). Eigenvalues do not depend on the
coordinates that a model chose.
"""

from typing import NamedTuple

import numpy as np

from headjax.checks import check
from headjax.outline import of_fields, table_of_fields

# Directions below this share of the largest are dropped before a cyclic fit.
CYCLIC_TOLERANCE = 1e-3


class Operator(NamedTuple):
  """A fitted linear map z -> A z of centred coordinates.

  Attributes:
    matrix: `[r, r]`, A.
    eigenvalues: `[r]` complex, from the largest real part down.
    r2: the explained share of variance, mean over coordinates; nan where none
      varies.
    r2_pooled: the same of all coordinates' variance together.
  """

  matrix: np.ndarray
  eigenvalues: np.ndarray
  r2: float
  r2_pooled: float

  __repr__ = of_fields
  _repr_html_ = table_of_fields


class Cyclic(NamedTuple):
  """The map that moves a core from one residue to the next.

  Attributes:
    eigenvalues: `[k]` complex, from the largest real part down.
    near_unit: `[k]` bool, whether | |l| - 1 | is at most sin(pi / p).
    modes: the different modes 0 .. p // 2 of the near-unit ones, ascending.
    r2: pooled over coordinates, on the pairs that were fitted.
    r2_held_out: on pairs that were not; nan without any.
  """

  eigenvalues: np.ndarray
  near_unit: np.ndarray
  modes: tuple[int, ...]
  r2: float
  r2_held_out: float

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def dynamics(now: np.ndarray, then: np.ndarray) -> Operator:
  """The least-squares map from states to the next ones.

  Args:
    now: `[n, r]` coordinates, centred here.
    then: `[n, r]`, one step later, centred by itself.

  Returns:
    The map; where the states do not span all coordinates, the one of least
    norm.
  """
  now, then = np.asarray(now, np.float64), np.asarray(then, np.float64)
  check(
    now.ndim == 2 and now.shape == then.shape and len(now) >= 2,
    "states",
    f"shapes {now.shape} and {then.shape}",
    "two equal [n, r] with n of at least 2",
    "pass each state and the one after it",
  )
  now, then = now - now.mean(axis=0), then - then.mean(axis=0)
  matrix = np.linalg.lstsq(now, then)[0].T
  residual = then - now @ matrix.T
  return Operator(
    matrix,
    sorted_eigenvalues(matrix),
    _mean_r2(then, residual),
    _pooled_r2(then, residual),
  )


def sorted_eigenvalues(matrix: np.ndarray) -> np.ndarray:
  """Complex eigenvalues, by descending real part, then imaginary part."""
  values = np.linalg.eigvals(matrix).astype(complex)
  # Conjugates have equal real parts but for roundings.
  return values[np.lexsort((-values.imag, -values.real.round(9)))]


def eigenvalue_error(found: np.ndarray, expected: np.ndarray) -> float:
  """The largest relative error, eigenvalues matched in their order.

  Args:
    found: `[k]`, as `sorted_eigenvalues` gives.
    expected: `[k]`.

  Returns:
    The largest |found - expected| / |expected|, over the best matching.
  """
  found, expected = np.asarray(found), np.asarray(expected)
  check(
    found.shape == expected.shape,
    "eigenvalues",
    f"{found.size}",
    f"{expected.size}",
    "fit an operator of the core's own rank",
  )
  left, worst = list(found), 0.0
  for value in expected:
    distance = [abs(other - value) for other in left]
    worst = max(worst, min(distance) / abs(value))
    left.pop(int(np.argmin(distance)))
  return float(worst)


def residue_means(Z: np.ndarray, residues: np.ndarray, p: int) -> np.ndarray:
  """`[p, r]`: the mean coordinates of the samples of every residue.

  Args:
    Z: `[n, r]` coordinates.
    residues: `[n]` int in [0, p); each must occur.
    p: the modulus.
  """
  counts = np.bincount(residues, minlength=p)
  check(
    len(counts) == p and bool(counts.all()),
    "residues",
    f"{(counts > 0).sum()} different ones",
    f"all of 0 to {p - 1}",
    "use more samples",
  )
  sums = np.zeros((p, Z.shape[1]))
  np.add.at(sums, residues, Z)
  return sums / counts[:, None]


def cyclic_operator(means: np.ndarray, held_out: int = 0) -> Cyclic:
  """The least-squares map from every residue's mean to the next one's.

  With as many directions as p - 1 the fit is exact whatever the means are:
  only pairs that were held out can contradict it.

  Args:
    means: `[p, r]`, in the order of the residues; centred here.
    held_out: how many pairs, from residue 0 on, are not fitted.

  Returns:
    The map's spectrum; of constant means it is empty, and R2 is nan.

  Source: paper D's code. Directions whose singular value is below 1e-3 of the
    largest are dropped first.
  """
  means = np.asarray(means, np.float64)
  p = len(means)
  check(
    means.ndim == 2 and 0 <= held_out < p - 1 and p >= 3,
    "held_out",
    f"{held_out} of {p} pairs",
    "0 or more, which leaves two pairs of at least three",
    "hold out fewer",
  )
  centred = means - means.mean(axis=0)
  floor = 1e-12 * np.abs(means).max(initial=0) * np.sqrt(means.size)
  U, s, _ = np.linalg.svd(centred, full_matrices=False)
  kept = s > max(CYCLIC_TOLERANCE * s.max(initial=0), floor)
  states = (U * s)[:, kept]
  following = np.roll(states, -1, axis=0)
  fitted = slice(held_out, None)
  matrix = np.linalg.lstsq(states[fitted], following[fitted])[0].T
  residual = following - states @ matrix.T
  values = sorted_eigenvalues(matrix)
  near = np.abs(np.abs(values) - 1) <= np.sin(np.pi / p)
  modes = np.unique(mode_indices(values[near], p))
  return Cyclic(
    values,
    near,
    tuple(modes.tolist()),
    _pooled_r2(following[fitted], residual[fitted]),
    _pooled_r2(following[:held_out], residual[:held_out]),
  )


def mode_indices(eigenvalues: np.ndarray, p: int) -> np.ndarray:
  """`[k]` int: the nearest p-th root's number, k and p - k being one mode.

  Examples:
    >>> mode_indices(np.exp(2j * np.pi * np.array([0, 1, 4]) / 5), 5)
    array([0, 1, 1])
  """
  number = np.round(np.angle(eigenvalues) * p / (2 * np.pi)).astype(int) % p
  return np.minimum(number, p - number)


def _mean_r2(target: np.ndarray, residual: np.ndarray) -> float:
  variance = (target**2).sum(axis=0)
  alive = variance > 0
  if not alive.any():
    return float("nan")
  return float((1 - (residual**2).sum(axis=0)[alive] / variance[alive]).mean())


def _pooled_r2(target: np.ndarray, residual: np.ndarray) -> float:
  # Around 0, the mean over all residues, also where some were held out.
  total = (target**2).sum()
  return float(1 - (residual**2).sum() / total) if total else float("nan")
