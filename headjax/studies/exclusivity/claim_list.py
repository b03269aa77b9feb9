"""What does the paper claim, and what do we ask beyond it? All of it in order.

Read from paper A, sections 4 to 7 and appendix B. Where the paper refuses a
claim, or calls it undecided, its verdict says so; most of its designs have one
seed.
"""

from headjax.studies.exclusivity import (
  concentration_claims,
  geometry_claims,
  lane_claims,
  path_claims,
)
from headjax.studies.exclusivity.claims import Claim

CLAIMS: tuple[Claim, ...] = (
  *concentration_claims.losses(),
  *geometry_claims.leakage(),
  *concentration_claims.concentration(),
  *lane_claims.lanes(),
  *path_claims.paths(),
  *geometry_claims.alignment(),
  *path_claims.edges(),
  *path_claims.beyond(),
)
