"""Which subspaces do heads read and write, and how can they be designed?"""

from headjax.geometry.angles import principal_angles
from headjax.geometry.circuits import (
  Factored,
  ov_circuit,
  qk_circuit,
  scaled_idempotence,
)
from headjax.geometry.kerdock import (
  KerdockBasis,
  kerdock_basis,
  rotate,
  rotate_back,
)
from headjax.geometry.kerdock_members import check_members
from headjax.geometry.kernels import (
  Conservation,
  conservation,
  pairwise_projection_kernel,
  projection_kernel,
  projection_share,
)
from headjax.geometry.quadratic_forms import kerdock_signs
from headjax.geometry.subspaces import (
  Basis,
  embed,
  folded_read_space,
  orthonormal_basis,
  weight_read_space,
  write_space,
)

__all__ = [
  "Basis",
  "Conservation",
  "Factored",
  "KerdockBasis",
  "check_members",
  "conservation",
  "embed",
  "folded_read_space",
  "kerdock_basis",
  "kerdock_signs",
  "orthonormal_basis",
  "ov_circuit",
  "pairwise_projection_kernel",
  "principal_angles",
  "projection_kernel",
  "projection_share",
  "qk_circuit",
  "rotate",
  "rotate_back",
  "scaled_idempotence",
  "weight_read_space",
  "write_space",
]
