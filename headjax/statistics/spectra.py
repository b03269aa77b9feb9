"""How many directions does a cloud of vectors fill? And how long in training?

The participation ratio of the singular values says the first, its integral
over training the second. Rows are not centred.
"""

import numpy as np

from headjax.checks import check, check_choice

KINDS = ("entropy", "ipr")
SHARE = 0.18  # of all heads that are kept, unless the elbow decides
_TINY = 1e-12  # inside the logarithm


def gram(rows) -> np.ndarray:
  """`[..., d, d]` float64 sums of the rows' products with themselves.

  Sums of some rows may be added to sums of others: that is how many rows are
  gone through without holding them.

  Args:
    rows: `[n, ..., d]`; the first axis is summed over.
  """
  rows = np.moveaxis(np.asarray(rows, np.float64), 0, -2)
  return np.swapaxes(rows, -1, -2) @ rows


def participation_ratio(gram, kind: str = "entropy") -> np.ndarray:
  """The effective number of directions, from 1 to d.

  Args:
    gram: `[..., d, d]` from `gram`.
    kind: "entropy", the exponential of the entropy of the squared singular
      values' shares, or "ipr", their inverse participation ratio.

  Returns:
    `[...]` float64; 0 where all rows are 0.

  Raises:
    ValueError: not a square table, or numbers that are not finite.

  Examples:
    >>> participation_ratio(np.eye(3)).round(6).item()
    3.0

  Source: paper B, step 1. The paper says participation ratio; what it was
    computed with is the entropy.
  """
  check_choice("kind", kind, KINDS)
  gram = np.asarray(gram, np.float64)
  check(
    gram.ndim >= 2 and gram.shape[-1] == gram.shape[-2],
    "gram",
    f"shape {gram.shape}",
    "[..., d, d]",
    "pass the sums of headjax.statistics.spectra.gram",
  )
  check(
    bool(np.isfinite(gram).all()),
    "gram",
    "numbers that are not finite",
    "finite ones",
    "look for overflow in the heads' outputs",
  )
  power = np.maximum(np.linalg.eigvalsh(gram), 0)
  total = power.sum(-1, keepdims=True)
  share = power / np.where(total > 0, total, 1)
  if kind == "entropy":
    ratio = np.exp(-(share * np.log(share + _TINY)).sum(-1))
  else:
    square = (share**2).sum(-1)
    ratio = 1 / np.where(square > 0, square, 1)
  return np.where(total[..., 0] > 0, ratio, 0.0)


def trajectory_integral(ratio, at, *, logarithmic: bool = True) -> np.ndarray:
  """How long, and how far, the ratio stays above 1.

  Args:
    ratio: `[point, ...]` participation ratios.
    at: `[point]` tokens or steps, ascending. Points at 0 have no logarithm and
      are left out, of steps as well: nothing has been learned there.
    logarithmic: whether the integral is over log(at), or over `at` itself.

  Returns:
    `[...]`, the trapezoid integral of max(ratio - 1, 0).

  Raises:
    ValueError: fewer than two points after 0, or points out of order.

  Examples:
    >>> trajectory_integral([3.0, 3.0], [1.0, np.e]).item()
    2.0

  Source: paper B, step 1; the released code of the small models integrates
    over steps.
  """
  ratio, at = _points(ratio, at)
  place = np.log(at) if logarithmic else at
  return np.trapezoid(np.maximum(ratio - 1, 0), place, axis=0)


def spread(ratio) -> np.ndarray:
  """`[...]`: the largest ratio of a trajectory less the smallest.

  Args:
    ratio: `[point, ...]`.
  """
  ratio = np.asarray(ratio, np.float64)
  return ratio.max(axis=0) - ratio.min(axis=0)


def ranking(values) -> np.ndarray:
  """`[head, 2]` (layer, head), the largest value first; ties in order.

  Args:
    values: `[layer, head]`.
  """
  values = np.asarray(values)
  order = np.argsort(-values, axis=None, kind="stable")
  return np.stack(np.unravel_index(order, values.shape), axis=-1)


def elbow(values) -> int:
  """How many values stand before the bend of their sorted curve.

  The bend is the point farthest below the line from the largest value to the
  smallest; on a straight line there is none, and the number is that of all.

  Args:
    values: any shape, at least two numbers.
  """
  falling = -np.sort(-np.asarray(values, np.float64), axis=None)
  check(
    falling.size >= 2,
    "values",
    falling.size,
    "at least two",
    "pass the values of all heads",
  )
  line = np.linspace(falling[0], falling[-1], falling.size)
  below = line - falling
  flat = below.max() <= 1e-9 * max(abs(falling[0] - falling[-1]), _TINY)
  return falling.size if flat else int(below.argmax())


def n_kept(n_heads: int, share: float = SHARE) -> int:
  """How many heads a share is; at least one."""
  check(0 < share <= 1, "share", share, "above 0, up to 1", "choose a share")
  return max(1, round(share * n_heads))


def _points(ratio, at) -> tuple[np.ndarray, np.ndarray]:
  """The points after 0, checked."""
  ratio, at = np.asarray(ratio, np.float64), np.asarray(at, np.float64)
  check(
    at.ndim == 1 and ratio.shape[:1] == at.shape,
    "at",
    f"shape {at.shape} beside ratios of shape {ratio.shape}",
    "one number a point",
    "pass the tokens or steps of these checkpoints",
  )
  check(
    bool((np.diff(at) > 0).all()),
    "at",
    at.tolist(),
    "ascending numbers, none twice",
    "sort the checkpoints by their step",
  )
  after = at > 0
  check(
    after.sum() >= 2,
    "at",
    f"{after.sum()} points after 0",
    "at least two",
    "measure more checkpoints",
  )
  return ratio[after], at[after]
