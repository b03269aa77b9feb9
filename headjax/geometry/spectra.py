"""How many directions does a head's circuit carry? Its singular values."""

import dataclasses

import numpy as np

from headjax.geometry.circuits import Factored
from headjax.outline import of_fields, table_of_fields


@dataclasses.dataclass(frozen=True)
class Spectrum:
  """The singular value decomposition of a factored matrix.

  Attributes:
    reads: `[..., rows, inner]`, orthonormal columns: what is read.
    values: `[..., inner]`, falling.
    writes: `[..., inner, columns]`, orthonormal rows: what is written for it.
  """

  reads: np.ndarray
  values: np.ndarray
  writes: np.ndarray

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  @property
  def top_share(self) -> np.ndarray:
    """`[...]`: share of the squared Frobenius norm in the first direction."""
    square = self.values**2
    total = square.sum(axis=-1)
    return np.divide(
      square[..., 0], total, out=np.zeros_like(total), where=total > 0
    )


def spectrum(circuit: Factored) -> Spectrum:
  """The decomposition, without the dense matrix.

  Args:
    circuit: `[..., rows, columns]`, with no more than that in between.

  Returns:
    Everything in float64.

  Examples:
    >>> found = spectrum(Factored(np.eye(3)[:, :2], np.diag([1.0, 2.0])))
    >>> found.values, float(found.top_share)
    (array([2., 1.]), 0.8)
  """
  left, right = (
    np.asarray(x, np.float64) for x in (circuit.left, circuit.right)
  )
  q_left, r_left = np.linalg.qr(left)
  q_right, r_right = np.linalg.qr(np.swapaxes(right, -1, -2))
  u, values, v = np.linalg.svd(
    r_left @ np.swapaxes(r_right, -1, -2), full_matrices=False
  )
  return Spectrum(q_left @ u, values, v @ np.swapaxes(q_right, -1, -2))
