"""What do per-example effects say, and how surely? NumPy and SciPy only."""

from headjax.statistics.concentration import (
  Concentration,
  Factors,
  concentration,
  factorise,
  neff,
)
from headjax.statistics.draws import p_value, permuted_null
from headjax.statistics.effects import as_effects, mean_effect
from headjax.statistics.halves import HalfLanes, half_lanes
from headjax.statistics.lanes import (
  Lanes,
  TopHead,
  confirm_heads,
  lane_score,
  lanes,
)
from headjax.statistics.resampling import (
  Interval,
  bootstrap,
  head_intervals,
  paired_difference,
)
from headjax.statistics.seeds import (
  SeedInterval,
  seed_difference,
  seed_interval,
)
from headjax.statistics.subsets import (
  LeftOut,
  by_condition,
  leave_one_group_out,
)

__all__ = [
  "Concentration",
  "Factors",
  "HalfLanes",
  "Interval",
  "Lanes",
  "LeftOut",
  "SeedInterval",
  "TopHead",
  "as_effects",
  "bootstrap",
  "by_condition",
  "concentration",
  "confirm_heads",
  "factorise",
  "half_lanes",
  "head_intervals",
  "lane_score",
  "lanes",
  "leave_one_group_out",
  "mean_effect",
  "neff",
  "p_value",
  "paired_difference",
  "permuted_null",
  "seed_difference",
  "seed_interval",
]
