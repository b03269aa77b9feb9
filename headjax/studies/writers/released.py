"""What did the paper release about one model and task? One file, as arrays.

A cell holds, for every head, its mean attribution and those with shuffled
labels, and for every candidate its effects on each pair of prompts. Numbers in
the file that were computed from other numbers in it are kept beside them, so
that the two can be compared.

Source: paper C, its released results; fields keep their names there.
"""

import dataclasses

import numpy as np

HEAD_NUMBERS = (
  "real_dla",
  "real_SE",
  "sign_consistency",
  "shuf_mean",
  "shuf_std",
  "refined_dla",
  "z_stat",
  "denom",
  "across_seed_std",
  "p_value",
)
PAIR_NUMBERS = (
  "clean_ld",
  "corr_ld",
  "direct_ld",
  "total_ld",
  "full_swing",
  "direct_effect",
  "total_effect",
  "indirect_effect",
)

# A head: its layer and its index in it, from 0.
Head = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Path:
  """What was released about one candidate.

  Attributes:
    n_pairs: how many pairs there were.
    n_valid: how many had a large enough swing.
    threshold: that swing, in logits.
    n_bootstrap: resamples.
    alpha: 1 minus the level of the intervals.
    pairs: PAIR_NUMBERS -> `[pair]` logits.
    mean: path -> mean share of the swing.
    interval: path -> the two ends of its interval.
    p: path -> two-sided bootstrap p.
    mean_swing: of the valid pairs, in logits.
    samples: `[sample]` some of the resampled direct shares.
    second: direct share with another seed, and how far it is from the first;
      None where it was not measured.
    passes: whether the direct share passes the false discovery rate.
    label: where the candidate comes from.
  """

  n_pairs: int
  n_valid: int
  threshold: float
  n_bootstrap: int
  alpha: float
  pairs: dict[str, np.ndarray]
  mean: dict[str, float]
  interval: dict[str, np.ndarray]
  p: dict[str, float]
  mean_swing: float
  samples: np.ndarray
  second: tuple[float, float] | None
  passes: bool
  label: str


@dataclasses.dataclass(frozen=True)
class Released:
  """A released cell.

  Attributes:
    task: of the prompts.
    model: that was measured.
    n_prompts: of the discovery.
    n_shuffles: how often labels were shuffled.
    q: the false discovery rate.
    threshold: swing of a valid pair, in logits.
    n_bootstrap: resamples.
    heads: the heads of the discovery, in the file's order.
    numbers: HEAD_NUMBERS -> `[head]`.
    shuffled: `[shuffle, head]` mean attributions with shuffled labels.
    by_seed: `[seed, head]` mean attributions on the prompts of each seed.
    seed_counts: `[seed, head]` how many prompts those were.
    passes_bh: `[head]` whether z passes the false discovery rate.
    passes_z: `[head]` whether z is large.
    classes: what the file calls each head.
    paths: the candidates.
    screen_k: K of the candidate rule.
    sets: `writers_refined`, `cancellers_refined` and `top_by_dla`.
    writers: the heads that the file expects to be writers.
    cancellers: likewise.
  """

  task: str
  model: str
  n_prompts: int
  n_shuffles: int
  q: float
  threshold: float
  n_bootstrap: int
  heads: list[Head]
  numbers: dict[str, np.ndarray]
  shuffled: np.ndarray
  by_seed: np.ndarray
  seed_counts: np.ndarray
  passes_bh: np.ndarray
  passes_z: np.ndarray
  classes: list[str]
  paths: dict[Head, Path]
  screen_k: int
  sets: dict[str, set[Head]]
  writers: set[Head]
  cancellers: set[Head]


def name_of(head: Head) -> str:
  """A head as the released files write it.

  Examples:
    >>> name_of((11, 4))
    'L11.H4'
  """
  return f"L{head[0]}.H{head[1]}"
