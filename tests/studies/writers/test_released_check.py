"""Is every number and every label of a released cell really compared?"""

import functools

import pytest
import released_cell

from headjax.studies.writers.released_check import check_released
from headjax.studies.writers.released_file import read_released

FIRST = "discovery/0"


@functools.cache
def made(**options):
  return released_cell.rounded(released_cell.cell(**options))


def report(tmp_path, content, draws=2000):
  path = released_cell.write(tmp_path / "cell.json", content)
  return check_released(read_released(path), draws=draws)


@pytest.mark.parametrize(
  "options",
  [
    {},
    {"planted": 0},
    {"layers": 2, "heads": 7, "shuffles": 2, "pairs": 20},
    {"scale": 50.0, "seed": 3},
  ],
)
def test_a_consistent_cell_agrees(tmp_path, options):
  found = report(tmp_path, made(**options))
  assert found.mismatches == []
  assert [c.statistic for c in found.comparisons if not c.agrees] == []
  assert found.agrees
  heads = made(**options)["discovery"]
  passing = sum(head["passes_bh_fdr_q"] for head in heads)
  assert passing >= options.get("planted", 9)
  assert f"{len(heads)} heads, {passing} significant" in found.notes[0]


def path_of(name):
  """The place of a candidate that has a second seed."""
  content = made()
  first = next(
    head
    for head, entry in content["path_patching"].items()
    if "seed2_direct_pct" in entry
  )
  return f"path_patching/{first}/{name}"


@pytest.mark.parametrize(
  ("place", "change", "statistic"),
  [
    (f"{FIRST}/shuf_mean", 4e-6, "shuf_mean"),
    (f"{FIRST}/shuf_std", 4e-6, "shuf_std"),
    (f"{FIRST}/refined_dla", 4e-6, "refined_dla"),
    (f"{FIRST}/denom", 4e-6, "denom"),
    (f"{FIRST}/z_stat", 4e-5, "z_stat"),
    (f"{FIRST}/p_value", 4e-5, "p_value"),
    (f"{FIRST}/real_dla", 4e-6, "real_dla"),
    (f"{FIRST}/real_SE", 4e-5, "denom"),
    (f"{FIRST}/shuf_dlas/2", 4e-5, "shuf_mean"),
    (f"{FIRST}/across_seed_std", 4e-6, "across_seed_std"),
    (f"{FIRST}/sign_consistency", 1e-3, "sign_consistency"),
    (f"{FIRST}/per_seed_real_dla/1/n", 1, "n of the seeds"),
    ("n_prompts", 2, "n of the seeds"),
    (path_of("per_pair/3/clean_ld"), 4e-5, "full_swing"),
    (path_of("per_pair/3/corr_ld"), 4e-5, "full_swing"),
    (path_of("per_pair/3/direct_ld"), 4e-5, "direct_effect"),
    (path_of("per_pair/3/total_ld"), 4e-5, "total_effect"),
    (path_of("per_pair/3/indirect_effect"), 4e-5, "indirect_effect"),
    (path_of("mean_direct_pct"), 4e-6, "mean_direct_pct"),
    (path_of("mean_total_pct"), 4e-6, "mean_total_pct"),
    (path_of("mean_indirect_pct"), 4e-6, "mean_indirect_pct"),
    (path_of("mean_full_swing"), 2e-5, "mean_full_swing"),
    (path_of("n_valid"), 1, "n_valid"),
    (path_of("n_pairs"), 1, "n_pairs"),
    (path_of("n_bootstrap"), 1, "n_bootstrap"),
    (path_of("valid_filter_threshold"), 1e-3, "valid_filter_threshold"),
    (path_of("seed2_direct_pct"), 1e-3, "seed_robustness_abs_diff"),
    (path_of("ci_direct/0"), 0.01, "ci_direct"),
    (path_of("ci_total/1"), 0.01, "ci_total"),
    (path_of("ci_indirect/1"), -0.01, "ci_indirect"),
    (path_of("p_direct_two_sided"), 0.05, "p_direct_two_sided"),
    (path_of("p_total_two_sided"), 0.05, "p_total_two_sided"),
    (path_of("p_indirect_two_sided"), 0.05, "p_indirect_two_sided"),
  ],
)
def test_a_changed_number_is_found(tmp_path, place, change, statistic):
  content = released_cell.changed(made(), place, lambda x: x + change)
  found = report(tmp_path, content)
  wrong = {c.statistic for c in found.comparisons if not c.agrees}
  assert statistic in wrong and not found.agrees


def test_shifted_bootstrap_samples_are_found(tmp_path):
  place = path_of("bootstrap_direct_samples")
  content = released_cell.changed(
    made(), place, lambda x: [y + 0.01 for y in x]
  )
  found = report(tmp_path, content)
  wrong = [c for c in found.comparisons if not c.agrees]
  assert [c.statistic for c in wrong] == ["bootstrap_direct_samples"]
  assert wrong[0].where == place.split("/")[1] and wrong[0].wrong == 1


@pytest.mark.parametrize(
  ("place", "value", "words"),
  [
    (f"{FIRST}/passes_bh_fdr_q", False, "L0.H0: passes_bh_fdr_q is False"),
    (f"{FIRST}/passes_z", False, "L0.H0: passes_z is False"),
    (f"{FIRST}/classification", "unused", "L0.H0: classification is 'unused'"),
    ("screened/pp_screen_k", 26, "screened: pp_screen_k is 26, recomputed 27"),
    ("screened/writers_refined/0", None, "writers_refined: L0.H0 recomputed"),
    ("screened/cancellers_refined/0", [2, 9], "L2.H9 there, not recomputed"),
    ("screened/top_by_dla/0", None, "top_by_dla: "),
    (path_of("pp_passes_bh_fdr_q"), False, "pp_passes_bh_fdr_q is False"),
    (path_of("discovery_label"), "canceller", "discovery_label is 'canceller'"),
    ("expected/writers/0", None, "expected writers: "),
    ("expected/cancellers", [], "expected cancellers: "),
    ("fdr_q", 1e-9, "passes_bh_fdr_q is True"),
  ],
)
def test_a_changed_label_is_a_mismatch(tmp_path, place, value, words):
  content = released_cell.changed(made(), place, value)
  found = report(tmp_path, content)
  assert not found.agrees
  assert any(words in line for line in found.mismatches), found.mismatches


def test_the_cell_has_heads_of_every_class():
  classes = {head["classification"] for head in made()["discovery"]}
  classes |= {head["classification"] for head in made(planted=0)["discovery"]}
  assert len(classes) == 5
  sizes = [abs(head["z_stat"]) for head in made()["discovery"]]
  assert any(1 < z < 2 for z in sizes)


def test_a_candidate_that_is_missing_is_a_mismatch(tmp_path):
  content = made()
  last = list(content["path_patching"])[-1]
  content = released_cell.changed(content, f"path_patching/{last}", None)
  found = report(tmp_path, content)
  assert f"path_patching: {last} recomputed, not there" in found.mismatches


def test_a_pair_without_a_swing_still_has_an_orientation(tmp_path):
  content = made()
  for entry in content["path_patching"].values():
    pair = entry["per_pair"][0]
    pair |= {"clean_ld": 1.0, "corr_ld": 1.0, "full_swing": 0.0}
    pair |= {"direct_ld": 0.75, "direct_effect": 0.25}
    pair |= {"total_ld": 0.5, "total_effect": 0.5, "indirect_effect": 0.25}
  found = report(tmp_path, content)
  wrong = {c.statistic for c in found.comparisons if not c.agrees}
  assert not wrong & {"full_swing", "direct_effect", "total_effect"}


def test_candidates_on_other_pairs_are_resampled_alone(tmp_path):
  content = made()
  other = made(seed=5)
  name = next(iter(content["path_patching"]))
  entry = dict(content["path_patching"][name])
  donor = next(iter(other["path_patching"].values()))
  for key in ("seed2_direct_pct", "discovery_label"):
    donor = donor | {key: entry.get(key, donor[key])}
  gap = abs(donor["seed2_direct_pct"] - donor["mean_direct_pct"])
  donor |= {"seed_robustness_abs_diff": gap}
  changed = released_cell.changed(content, f"path_patching/{name}", donor)
  found = report(tmp_path, changed)
  assert [c.statistic for c in found.comparisons if not c.agrees] == []


def test_the_released_cell_is_reproduced(reference):
  path = reference / "writers_cancellers_hierarchical_410m.json"
  if not path.exists():
    pytest.skip("the folder has no released cell")
  cell = read_released(path)
  found = check_released(cell)
  assert found.agrees, found
  largest = {c.statistic: c.largest for c in found.comparisons}
  assert largest["denom"] < 1e-6
  assert max(largest["z_stat"], largest["p_value"]) < 1e-5
  assert largest["mean_direct_pct"] < 1e-6
  assert "9 significant at q = 0.1, K = 27, 30 candidates" in found.notes[0]
  assert found.notes[1].startswith("8 writers by our draws: ")
  assert found.notes[2].startswith("6 cancellers by our draws: ")
