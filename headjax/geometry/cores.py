"""Which few directions of an activation vary, and also move the outputs?

With H the centred activations and J the outputs' derivatives with respect to
them, the singular vectors of H J^T are directions in the order of how much of
the outputs' change they carry, to first order. A direction that varies and is
read by nothing is not among them, nor one that is read and does not vary.

All of it is float64 on the host. Two forms give the same core: `core_from_rows`
decomposes H J^T itself, `Moments` keeps two `[d, d]` sums that any number of
portions are added to. The second squares what it keeps, so that a singular
value below about 1e-8 of the largest is noise there; both therefore end at
RANK_TOLERANCE.

Degenerate cases are not errors. Where no activation varies or no output
depends on them the core has rank 0; with fewer samples than dimensions, or
activations that fill a subspace only, it lies within their span.
"""

import dataclasses

import numpy as np

from headjax.checks import check
from headjax.outline import of_fields, table_of_fields

# A singular value below this fraction of the largest one counts as zero.
RANK_TOLERANCE = 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class Core:
  """Directions of an activation, from the one that carries most.

  Attributes:
    basis: `[d, k]`, orthonormal; the first r columns span the core of rank r.
    singular_values: `[k]`, descending, positive: of H J^T, divided by the roots
      of N - 1 (the activations) and of the number of Jacobians.
  """

  basis: np.ndarray
  singular_values: np.ndarray

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def rank(self, share: float) -> int:
    """The smallest rank that carries a share of the squares.

    Args:
      share: above 0, at most 1.

    Returns:
      0 to k; 0 only for a core that has no direction.

    Examples:
      >>> Core(np.eye(3)[:, :2], np.array([3.0, 1.0])).rank(0.9)
      1
    """
    check(0 < share <= 1, "share", share, "above 0, at most 1", "change it")
    if not len(self.singular_values):
      return 0
    weight = np.cumsum(self.singular_values**2)
    # Against a rounding of the sum: a share of 1 is all that there is.
    found = 1 + int((weight < share * weight[-1] * (1 - 1e-12)).sum())
    return min(found, len(weight))

  def span(self, rank: int) -> np.ndarray:
    """`[d, rank]`: the first columns of the basis."""
    check(
      0 <= rank <= self.basis.shape[1],
      "rank",
      rank,
      f"0 to {self.basis.shape[1]}, what the core has",
      "ask for fewer directions",
    )
    return self.basis[:, :rank]


def core_from_rows(H: np.ndarray, J: np.ndarray) -> Core:
  """The core by the singular vectors of H J^T, which is held in memory.

  Args:
    H: `[n, d]` activations; centred here.
    J: `[m, outputs, d]` derivatives of the outputs at m of the activations.

  Raises:
    ValueError: shapes that do not fit, or numbers that are not finite.

  Source: paper D, the extraction step.
  """
  H, J = _rows("H", H), _jacobians(J, np.shape(H)[-1])
  _check_count(len(H))
  centred = H - H.mean(axis=0)
  U, s, _ = np.linalg.svd(centred @ J.reshape(-1, J.shape[-1]).T, False)
  kept = U[:, _alive(s)]
  scale = np.sqrt((len(H) - 1) * len(J))
  return _core(centred.T @ kept, s / scale)


class Moments:
  """Sums from which a core comes; portions may be added in any order.

  Attributes:
    n: activations added.
    n_jacobians: of how many samples the derivatives were added.
    mean: `[d]`, of the activations.
  """

  def __init__(self, d: int):
    """Starts with nothing.

    Args:
      d: width of the activation.
    """
    self.n, self.n_jacobians = 0, 0
    self.mean = np.zeros(d)
    self._scatter = np.zeros((d, d))
    self._gram = np.zeros((d, d))

  def add_activations(self, H: np.ndarray) -> None:
    """Adds `[n, d]` activations."""
    H = _rows("H", H, len(self.mean))
    if not len(H):
      return
    # Around the portion's own mean: a large common offset cancels nothing.
    own = H.mean(axis=0)
    centred, shift = H - own, own - self.mean
    n = self.n + len(H)
    self._scatter += centred.T @ centred
    self._scatter += np.outer(shift, shift) * (self.n * len(H) / n)
    self.mean = self.mean + shift * (len(H) / n)
    self.n = n

  def add_jacobians(self, J: np.ndarray) -> None:
    """Adds `[m, outputs, d]` derivatives, at m samples."""
    J = _jacobians(J, len(self.mean))
    flat = J.reshape(-1, J.shape[-1])
    self._gram += flat.T @ flat
    self.n_jacobians += len(J)

  @property
  def covariance(self) -> np.ndarray:
    """`[d, d]`: of the activations, over N - 1."""
    _check_count(self.n)
    return self._scatter / (self.n - 1)

  @property
  def observability(self) -> np.ndarray:
    """`[d, d]`: the mean over samples of J_n^T J_n."""
    check(
      self.n_jacobians > 0,
      "J",
      "no derivatives",
      "those of one sample at least",
      "call add_jacobians",
    )
    return self._gram / self.n_jacobians

  def core(self) -> Core:
    """The core of what was added."""
    return core_from_moments(self.covariance, self.observability)


def core_from_moments(
  covariance: np.ndarray, observability: np.ndarray
) -> Core:
  """The core by roots of the covariance and of the observability.

  With roots Cov = L_c L_c^T and Obs = L_o L_o^T, the singular values of
  L_c^T L_o are those of H J^T, and its left vectors, put through L_c, are the
  directions.

  Args:
    covariance: `[d, d]`, of the activations.
    observability: `[d, d]`, the mean of J_n^T J_n.

  Source: paper D. A small multiple of the identity that its code adds to both
    is left out: eigenvalues that are zero stay zero.
  """
  L_c, L_o = _root(covariance), _root(observability)
  U, s, _ = np.linalg.svd(L_c.T @ L_o)
  return _core(L_c @ U[:, : len(s)][:, _alive(s)], s)


def random_core(d: int, rank: int, seed: int) -> np.ndarray:
  """`[d, rank]`: orthonormal columns of an evenly distributed subspace."""
  check(0 <= rank <= d, "rank", rank, f"0 to {d}", "ask for fewer directions")
  normal = np.random.default_rng(seed).normal(size=(d, rank))
  return np.linalg.qr(normal)[0]


def principal_axes(covariance: np.ndarray) -> np.ndarray:
  """`[d, d]`: eigenvectors, from the largest variance down."""
  return np.linalg.eigh(covariance)[1][:, ::-1]


def _core(directions: np.ndarray, s: np.ndarray) -> Core:
  """Orthonormalises the live directions, which keeps the nested spans."""
  return Core(np.linalg.qr(directions)[0], s[_alive(s)])


def _alive(s: np.ndarray) -> np.ndarray:
  return s > RANK_TOLERANCE * s.max(initial=0)


def _root(matrix: np.ndarray) -> np.ndarray:
  """L with L L^T = matrix; of its eigenvalues, roundings become 0."""
  matrix = np.asarray(matrix, np.float64)
  values, turn = np.linalg.eigh((matrix + matrix.T) / 2)
  noise = RANK_TOLERANCE**2 * max(values.max(initial=0), 0)
  return turn * np.sqrt(np.where(values > noise, values, 0))


def _rows(name: str, rows: np.ndarray, d: int | None = None) -> np.ndarray:
  rows = np.asarray(rows, np.float64)
  width = rows.shape[-1] if d is None and rows.ndim else d
  check(
    rows.ndim == 2 and rows.shape[1] == width,
    name,
    f"shape {rows.shape}",
    f"[n, {'d' if width is None else width}]",
    "flatten examples and positions into rows",
  )
  _check_finite(name, rows)
  return rows


def _jacobians(J: np.ndarray, d: int) -> np.ndarray:
  J = np.asarray(J, np.float64)
  check(
    J.ndim == 3 and J.shape[-1] == d and J.size > 0,
    "J",
    f"shape {J.shape}",
    f"[m, outputs, {d}], none of them 0",
    "give every sample's derivatives of every output",
  )
  _check_finite("J", J)
  return J


def _check_finite(name: str, array: np.ndarray) -> None:
  finite = np.isfinite(array)
  check(
    bool(finite.all()),
    name,
    f"{array.size - finite.sum()} numbers that are not finite",
    "finite numbers",
    "check the run that they come from",
  )


def _check_count(n: int) -> None:
  check(n >= 2, "H", f"{n} rows", "at least 2", "add activations")
