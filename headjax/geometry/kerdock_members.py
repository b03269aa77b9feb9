"""Do the head blocks of different Kerdock bases overlap as random ones would?

Only where they do is a rotated design a fair control: otherwise some layers
read some others more than the rest, by construction.
"""

import itertools
from collections.abc import Iterable

import numpy as np

from headjax.checks import check
from headjax.geometry.kerdock import KerdockBasis

TOLERANCE = 0.01


def check_members(
  d_model: int, d_head: int, members: Iterable[int], n: int | None = None
) -> None:
  """Refuses bases whose head blocks overlap more or less than they should.

  Args:
    d_model: n * r.
    d_head: width of a head's block, d_head consecutive columns.
    members: the members that a design uses; a repeat is the same basis.
    n: width of the Hadamard factor, as in `KerdockBasis`.

  Raises:
    ValueError: if d_head does not divide d_model, a member does not exist, or
      the projection kernel of two blocks of different members leaves
      d_head^2 / d_model by more than 1%. It does not see shared directions,
      which leave the projection kernel as it is.

  Examples:
    >>> check_members(768, 64, range(24))

  Source: paper A, appendix C (the rule by which it rejects a set of members).
  """
  check(
    d_head > 0 and d_model % d_head == 0,
    "d_head",
    d_head,
    f"a divisor of d_model = {d_model}",
    "choose heads whose blocks tile the stream",
  )
  bases = [KerdockBasis(d_model, i, n) for i in sorted(set(members))]
  expected = d_head**2 / d_model
  for a, b in itertools.combinations(bases, 2):
    pk = _block_kernels(a, b, d_head)
    check(
      abs(pk / expected - 1).max() <= TOLERANCE,
      "members",
      f"projection kernels {pk.min():.4f} to {pk.max():.4f} between the head "
      f"blocks of members {a.member} and {b.member} (d_model {d_model} = "
      f"{a.n} x {a.r}, d_head {d_head})",
      f"within {TOLERANCE:.0%} of d_head^2 / d_model = {expected:.4f}",
      "choose a d_model with a wider Hadamard factor or another d_head",
    )


def _block_kernels(a: KerdockBasis, b: KerdockBasis, d_head: int) -> np.ndarray:
  """`[head, head]` projection kernels of all blocks of two different members.

  The Hadamard part of A^T B has entries +-1 / sqrt(n), so only the mixers and
  the number of columns of every mixer coordinate in a block matter.
  """
  coordinate = np.arange(a.d_model).reshape(-1, d_head) % a.r
  columns = (coordinate[..., None] == np.arange(a.r)).sum(axis=1)
  return columns @ (a.mixer.T @ b.mixer) ** 2 @ columns.T / a.n
