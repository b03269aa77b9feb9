"""What do per-example effects say, and how surely? NumPy and SciPy only."""

from headjax.statistics.bca import bca_mean
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
from headjax.statistics.multiplicity import benjamini_hochberg, holm, rejected
from headjax.statistics.partitions import Partitions, partitions
from headjax.statistics.ratios import Ratios, mean_ratios
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
from headjax.statistics.sign_flips import sign_flip_p
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
  "Partitions",
  "Ratios",
  "SeedInterval",
  "TopHead",
  "as_effects",
  "bca_mean",
  "benjamini_hochberg",
  "bootstrap",
  "by_condition",
  "concentration",
  "confirm_heads",
  "factorise",
  "half_lanes",
  "head_intervals",
  "holm",
  "lane_score",
  "lanes",
  "leave_one_group_out",
  "mean_effect",
  "mean_ratios",
  "neff",
  "p_value",
  "paired_difference",
  "partitions",
  "permuted_null",
  "rejected",
  "seed_difference",
  "seed_interval",
  "sign_flip_p",
]
