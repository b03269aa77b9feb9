"""Do the numbers of a released cell follow from each other? Recomputed, all.

What needs the model cannot be: the mean attribution of a head and its standard
error, the share of prompts with its sign, the logits of each pair, and the
direct share with another seed. They are what all others are computed from.
"""

import dataclasses

import numpy as np
from scipy import stats

from headjax.statistics.ratios import Ratios, mean_ratios
from headjax.statistics.shuffled_control import Controlled
from headjax.studies.writers.comparing import (
  Comparison,
  compare,
  compare_rates,
  end_deviation,
  rate_deviation,
)
from headjax.studies.writers.paths import PATHS
from headjax.studies.writers.released import Head, Released, name_of

# Chance that draws of one distribution look different in the KS test.
_KS = 1e-6


def resample(
  cell: Released, *, draws: int = 20_000, seed: int = 0
) -> dict[Head, Ratios]:
  """Shares of the swing of every candidate, from the effects of its pairs.

  Args:
    cell: as it was released.
    draws: resamples; candidates on the same pairs share them.
    seed: of the resamples.

  Returns:
    Candidate -> ratios in the order of PATHS.
  """
  alike = {}
  for head, path in cell.paths.items():
    swing = path.pairs["full_swing"]
    key = swing.tobytes(), path.threshold, path.alpha
    alike.setdefault(key, []).append(head)
  found = {}
  for heads in alike.values():
    first = cell.paths[heads[0]]
    effects = [
      cell.paths[head].pairs[f"{path}_effect"]
      for head in heads
      for path in PATHS
    ]
    ratios = mean_ratios(
      np.stack(effects, axis=1),
      first.pairs["full_swing"],
      threshold=first.threshold,
      draws=draws,
      seed=seed,
      level=1 - first.alpha,
    )
    for i, head in enumerate(heads):
      found[head] = _columns(ratios, slice(3 * i, 3 * i + 3))
  return found


def _columns(ratios: Ratios, which: slice) -> Ratios:
  """Some parts of the ratios."""
  values = {
    name: getattr(ratios, name)[..., which]
    for name in ("mean", "low", "high", "p", "draws")
  }
  return dataclasses.replace(ratios, **values)


def of_heads(cell: Released, control: Controlled) -> list[Comparison]:
  """Numbers of the discovery; tolerances are those of released rounding."""
  names, counts = [name_of(head) for head in cell.heads], cell.seed_counts
  by_seed = (cell.by_seed * counts).sum(axis=0) / counts.sum(axis=0)
  # The size of the terms of a difference tells what their rounding does.
  size = np.abs(control.mean) + np.abs(control.shuffled_mean)
  deviates = size / np.where(control.denom > 0, control.denom, 1.0)
  seeds = np.abs(cell.by_seed).max(axis=0)
  rows = [
    ("shuf_mean", control.shuffled_mean, 1e-6, size),
    ("shuf_std", control.shuffled_sd, 1e-6, size),
    ("refined_dla", control.refined, 1e-6, size),
    ("denom", control.denom, 1e-6, size),
    ("z_stat", control.z, 1e-5, deviates),
    ("p_value", control.p, 1e-5, deviates),
    ("real_dla", by_seed, 1e-6, seeds),
  ]
  if len(counts) > 1:
    spread = cell.by_seed.std(axis=0, ddof=1)
    rows.append(("across_seed_std", spread, 1e-6, seeds))
  found = [
    compare(
      name, ours, cell.numbers[name], names, allowed=allowed, rounded=rounded
    )
    for name, ours, allowed, rounded in rows
  ]
  # Shares and counts of prompts are whole numbers of them.
  prompts = cell.numbers["sign_consistency"] * cell.n_prompts
  total = np.full(len(names), cell.n_prompts)
  return [
    *found,
    compare(
      "sign_consistency", np.round(prompts), prompts, names, allowed=1e-3
    ),
    compare("n of the seeds", counts.sum(axis=0), total, names, allowed=0),
  ]


def of_pairs(cell: Released) -> list[Comparison]:
  """Effects of every pair, from its logits."""
  rows = {name: [] for name in ("full_swing", *map("{}_effect".format, PATHS))}
  names = []
  for head, path in cell.paths.items():
    pairs, sign = path.pairs, _orientation(path.pairs)
    low, direct, total = (
      pairs[name] for name in ("corr_ld", "direct_effect", "total_effect")
    )
    for name in ("clean", "direct", "total"):
      high = pairs[f"{name}_ld"]
      size = np.abs(high) + np.abs(low)
      field = "full_swing" if name == "clean" else f"{name}_effect"
      rows[field].append((sign * (high - low), pairs[field], size))
    size = np.abs(total) + np.abs(direct)
    indirect = total - direct, pairs["indirect_effect"], size
    rows["indirect_effect"].append(indirect)
    names += [f"{name_of(head)}, pair {i}" for i in range(len(low))]
  found = []
  for name, parts in rows.items():
    ours, theirs, size = map(np.concatenate, zip(*parts, strict=True))
    found.append(compare(name, ours, theirs, names, allowed=1e-5, rounded=size))
  return found


def _orientation(pairs: dict[str, np.ndarray]) -> np.ndarray:
  """`[pair]` 1 or -1: logits are of one label, effects of the clean answer.

  The sign is not in the file; it is the one that leaves less to explain.
  """
  rows = [("clean_ld", "full_swing")]
  rows += [(f"{path}_ld", f"{path}_effect") for path in ("direct", "total")]
  left = {
    sign: sum(
      np.abs(sign * (pairs[high] - pairs["corr_ld"]) - pairs[effect])
      for high, effect in rows
    )
    for sign in (1.0, -1.0)
  }
  return np.where(left[1.0] <= left[-1.0], 1.0, -1.0)


def of_shares(cell: Released, ours: dict[Head, Ratios]) -> list[Comparison]:
  """Mean shares, counts and swings of the candidates."""
  rows = {f"mean_{path}_pct": ([], [], 1e-6) for path in PATHS}
  rows |= {"mean_full_swing": ([], [], 1e-6), "n_valid": ([], [], 0)}
  rows |= {"n_pairs": ([], [], 0), "valid_filter_threshold": ([], [], 0)}
  rows |= {"n_bootstrap": ([], [], 0)}

  def add(name, mine, theirs):
    rows[name][0].append(mine)
    rows[name][1].append(theirs)

  for head, path in cell.paths.items():
    for name, mean in zip(PATHS, ours[head].mean, strict=True):
      add(f"mean_{name}_pct", mean, path.mean[name])
    swing, valid = path.pairs["full_swing"], ours[head].valid
    mean = swing[valid].mean() if valid.any() else np.nan
    add("mean_full_swing", mean, path.mean_swing)
    add("n_valid", valid.sum(), path.n_valid)
    add("n_pairs", len(swing), path.n_pairs)
    add("valid_filter_threshold", cell.threshold, path.threshold)
    add("n_bootstrap", cell.n_bootstrap, path.n_bootstrap)
  names = [name_of(head) for head in cell.paths]
  return [
    compare(name, mine, theirs, names, allowed=allowed)
    for name, (mine, theirs, allowed) in rows.items()
  ]


def of_second_seed(cell: Released) -> Comparison:
  """How far the direct shares of another seed are from the first."""
  paths = {name_of(h): path for h, path in cell.paths.items() if path.second}
  return compare(
    "seed_robustness_abs_diff",
    [abs(p.second[0] - p.mean["direct"]) for p in paths.values()],
    [path.second[1] for path in paths.values()],
    list(paths),
    allowed=1e-6,
  )


def of_draws(cell: Released, ours: dict[Head, Ratios]) -> list[Comparison]:
  """Intervals, p-values and resampled shares, within their own noise."""
  names, found = [name_of(head) for head in cell.paths], []
  for i, name in enumerate(PATHS):
    ends, rates = [], []
    for head, path in cell.paths.items():
      draws, n = ours[head].draws[:, i], path.n_bootstrap
      tails = path.alpha / 2, 1 - path.alpha / 2
      both = [
        end_deviation(draws, end, tail, n)
        for end, tail in zip(path.interval[name], tails, strict=True)
      ]
      ends.append(np.max(np.abs(both)))
      # A two-sided p is twice the rate of one tail.
      p = ours[head].p[i] / 2, len(draws), path.p[name] / 2, n
      rates.append(rate_deviation(*p))
    found.append(compare_rates(f"ci_{name}", ends, names))
    found.append(compare_rates(f"p_{name}_two_sided", rates, names))
  samples = [
    _sample_deviation(path.samples, ours[head].draws[:, 0])
    for head, path in cell.paths.items()
  ]
  name, allowed = "bootstrap_direct_samples", float(stats.norm.isf(_KS / 2))
  return [*found, compare_rates(name, samples, names, allowed=allowed)]


def _sample_deviation(theirs: np.ndarray, ours: np.ndarray) -> float:
  """How unlike two sets of draws are, as a normal deviate."""
  if not len(theirs):
    return 0.0
  if np.isnan(ours).any():
    return float("nan")
  p = stats.ks_2samp(theirs, ours).pvalue
  return float(stats.norm.isf(max(p, 1e-300) / 2))
