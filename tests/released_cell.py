"""A made-up cell in the form of the released ones, by plain Python alone."""

import copy
import json
import math
import random
import statistics


def cell(
  *,
  layers=3,
  heads=10,
  shuffles=6,
  prompts=96,
  pairs=60,
  planted=9,
  scale=1.0,
  seed=0,
):
  """A cell whose every number and label follows from the others.

  Args:
    layers: of the model.
    heads: in each.
    shuffles: of the labels.
    prompts: of the discovery, on two seeds.
    pairs: of prompts.
    planted: heads with an attribution that is not 0, of both signs.
    scale: of all logits.
    seed: of the numbers.
  """
  rng = random.Random(seed)
  names = [(layer, head) for layer in range(layers) for head in range(heads)]
  discovery = [
    head_entry(rng, at, i < planted, i % 2, shuffles, prompts, scale)
    for i, at in enumerate(names)
  ]
  mark(discovery, 0.1)
  order = sorted(discovery, key=lambda e: -abs(e["real_dla"]))
  passing = [e for e in discovery if e["passes_bh_fdr_q"]]
  k = max(20, 3 * len(passing))
  writers = [at_of(e) for e in passing if e["refined_dla"] > 0]
  cancellers = [at_of(e) for e in passing if e["refined_dla"] < 0]
  top = [at_of(e) for e in order[:k]]
  chosen = list(dict.fromkeys([*writers, *top, *cancellers]))
  signs = [rng.choice([-1, 1]) for _ in range(pairs)]
  logits = [(rng.gauss(1, 2) * scale, rng.gauss(0, 1)) for _ in range(pairs)]
  paths = {
    name_of(at): path_entry(rng, i, signs, logits, scale)
    for i, at in enumerate(chosen)
  }
  for at in chosen:
    entry = paths[name_of(at)]
    entry["discovery_label"] = (
      "writer" if at in writers else "TOP-BY-DLA" if at in top else "canceller"
    )
    if at in writers:
      second = entry["mean_direct_pct"] + 0.01
      entry["seed2_direct_pct"] = second
      entry["seed_robustness_abs_diff"] = 0.01
  passed = bh([e["p_direct_two_sided"] for e in paths.values()], 0.1)
  expected = {"writers": [], "cancellers": [], "rule": "five percent"}
  for (name, entry), passes in zip(paths.items(), passed, strict=True):
    entry["pp_passes_bh_fdr_q"] = passes
    if passes and entry["mean_direct_pct"] >= 0.05:
      expected["writers"].append(name)
    if passes and entry["mean_direct_pct"] <= -0.05:
      expected["cancellers"].append(name)
  return {
    "task": "made-up",
    "model": "none",
    "n_prompts": prompts,
    "n_shuffle_seeds": shuffles,
    "fdr_q": 0.1,
    "swing_threshold": 0.5,
    "n_bootstrap": 2000,
    "discovery": discovery,
    "path_patching": paths,
    "screened": {
      "writers_refined": [list(at) for at in writers],
      "cancellers_refined": [list(at) for at in cancellers],
      "top_by_dla": [list(at) for at in top],
      "pp_screen_k": k,
    },
    "expected": expected,
  }


def head_entry(rng, at, is_planted, is_odd, shuffles, prompts, scale):
  """One head of the discovery."""
  error = 0.01 * scale * rng.uniform(0.5, 2)
  mean = error * rng.gauss(0, 1)
  if is_planted:
    mean += error * (-8 if is_odd else 8)
  shuffled = [rng.gauss(0, error / 2) for _ in range(shuffles)]
  half, spread = prompts // 2, rng.gauss(0, error)
  by_seed = [
    {"seed": 42 + i, "real_dla": mean + (spread, -spread)[i], "n": half}
    for i in range(2)
  ]
  control = sum(shuffled) / shuffles
  deviation = statistics.stdev(shuffled)
  denom = math.sqrt(error**2 + deviation**2 / shuffles)
  z = (mean - control) / denom
  return {
    "layer": at[0],
    "head": at[1],
    "real_dla": mean,
    "real_SE": error,
    "sign_consistency": rng.randrange(prompts) / prompts,
    "shuf_mean": control,
    "shuf_std": deviation,
    "refined_dla": mean - control,
    "z_stat": z,
    "denom": denom,
    "shuf_dlas": shuffled,
    "per_seed_real_dla": by_seed,
    "across_seed_std": abs(spread) * math.sqrt(2),
    "p_value": math.erfc(abs(z) / math.sqrt(2)),
  }


def mark(discovery, q):
  """Flags and classes of all heads."""
  passed = bh([e["p_value"] for e in discovery], q)
  for entry, passes in zip(discovery, passed, strict=True):
    large = abs(entry["z_stat"]) >= 2
    side = "writer" if entry["z_stat"] > 0 else "Anti-writer"
    entry["passes_bh_fdr_q"], entry["passes_z"] = passes, large
    entry["classification"] = (
      f"{side} (refined)"
      if passes
      else f"{side} (z-only, fails FDR)"
      if large
      else "Rule-aware-unused (refined)"
    )


def path_entry(rng, i, signs, logits, scale):
  """One candidate; its direct share depends on its number."""
  share = (0.3, -0.2, 0.01)[i % 3]
  pairs = []
  for sign, (swing, low) in zip(signs, logits, strict=True):
    direct = swing * share + 0.1 * scale * rng.gauss(0, 1)
    total = swing * share / 2 + 0.1 * scale * rng.gauss(0, 1)
    pairs.append(
      {
        "clean_ld": low + sign * swing,
        "corr_ld": low,
        "direct_ld": low + sign * direct,
        "total_ld": low + sign * total,
        "full_swing": swing,
        "direct_effect": direct,
        "total_effect": total,
        "indirect_effect": total - direct,
      }
    )
  valid = [pair for pair in pairs if pair["full_swing"] >= 0.5]
  entry = {
    "n_pairs": len(pairs),
    "n_valid": len(valid),
    "valid_filter_threshold": 0.5,
    "mean_full_swing": statistics.fmean(p["full_swing"] for p in valid),
    "n_bootstrap": 2000,
    "alpha": 0.05,
    "per_pair": pairs,
  }
  for path in ("direct", "total", "indirect"):
    ratios = [pair[f"{path}_effect"] / pair["full_swing"] for pair in valid]
    draws = [
      statistics.fmean(rng.choices(ratios, k=len(ratios))) for _ in range(2000)
    ]
    low = sum(x <= 0 for x in draws)
    ends = statistics.quantiles(draws, n=40)
    entry |= {
      f"mean_{path}_pct": statistics.fmean(ratios),
      f"ci_{path}": [ends[0], ends[-1]],
      f"p_{path}_two_sided": 2 * min(low, 2000 - low) / 2000,
    }
    if path == "direct":
      entry["bootstrap_direct_samples"] = draws[:100]
  return entry


def bh(p, q):
  """Whether each passes, by the definition."""
  order = sorted(range(len(p)), key=lambda i: p[i])
  last = max(
    (r for r, i in enumerate(order, 1) if p[i] <= q * r / len(p)), default=0
  )
  return [order.index(i) < last for i in range(len(p))]


def at_of(entry):
  return entry["layer"], entry["head"]


def name_of(at):
  return f"L{at[0]}.H{at[1]}"


def rounded(value, digits=7):
  """The same with all numbers rounded to seven digits, as in a file."""
  if isinstance(value, dict):
    return {name: rounded(x) for name, x in value.items()}
  if isinstance(value, list):
    return [rounded(x) for x in value]
  return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def changed(content, path, value):
  """A copy in which the value at a path, such as "a.0.b", is another one."""
  content = copy.deepcopy(content)
  *way, last = [int(x) if x.isdecimal() else x for x in path.split("/")]
  inner = content
  for step in way:
    inner = inner[step]
  if value is None:
    del inner[last]
  else:
    inner[last] = value(inner[last]) if callable(value) else value
  return content


def write(path, content):
  path.write_text(json.dumps(content))
  return path
