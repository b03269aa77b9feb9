"""Is a file that is no released cell refused, in one line?"""

import functools
import json

import numpy as np
import pytest
import released_cell
from one_line import refusal

from headjax.studies.writers.released_file import read_released

PATH = "path_patching/L0.H0"


@functools.cache
def made():
  return released_cell.cell(layers=2, heads=3, pairs=4)


def test_values_arrive_at_their_places(tmp_path):
  content = made()
  path = released_cell.write(tmp_path / "cell.json", content)
  found = read_released(path)
  assert found.heads == [(i // 3, i % 3) for i in range(6)]
  entry = content["discovery"][4]
  assert found.numbers["z_stat"][4] == entry["z_stat"]
  np.testing.assert_array_equal(found.shuffled[:, 4], entry["shuf_dlas"])
  assert found.by_seed[1, 4] == entry["per_seed_real_dla"][1]["real_dla"]
  assert found.passes_bh[4] == entry["passes_bh_fdr_q"]
  own, theirs = found.paths[1, 2], content["path_patching"]["L1.H2"]
  assert own.mean["total"] == theirs["mean_total_pct"]
  assert own.interval["direct"].tolist() == theirs["ci_direct"]
  assert own.pairs["total_ld"][3] == theirs["per_pair"][3]["total_ld"]
  assert found.sets["top_by_dla"] == set(found.heads)
  assert found.writers == {
    tuple(map(int, name[1:].split(".H")))
    for name in content["expected"]["writers"]
  }


@pytest.mark.parametrize(
  ("place", "value", "words"),
  [
    ("discovery", None, "no field 'discovery'"),
    ("expected", None, "no field 'expected'"),
    ("screened", [], "screened: got list of 0; expected an object"),
    ("discovery", [], "discovery: got list of 0; expected a list of 1 or more"),
    ("discovery", {}, "discovery: got dict of 0; expected a list"),
    ("discovery/1", 3, "discovery[1]: got 3; expected an object"),
    ("discovery/1/z_stat", None, "discovery[1]: got no field 'z_stat'"),
    ("discovery/1/z_stat", "4", "discovery[1].z_stat: got '4'; expected a num"),
    ("discovery/1/z_stat", True, "discovery[1].z_stat: got True"),
    ("discovery/1/z_stat", 1e999, "cell.json: got the number Infinity"),
    ("discovery/1/z_stat", float("nan"), "cell.json: got the number NaN"),
    ("discovery/1/z_stat", 10**400, "expected a finite number"),
    ("discovery/1/layer", -1, "discovery[1].layer: got -1; expected an int"),
    ("discovery/1/layer", 1.5, "discovery[1].layer: got 1.5"),
    ("discovery/1/layer", 10**9, "discovery[1].layer: got 1000000000"),
    ("discovery/1/head", 0, "discovery: got 6 heads, 5 of them different"),
    ("discovery/1/passes_z", 1, "passes_z: got 1; expected true or false"),
    ("discovery/1/classification", 1, "classification: got 1; expected text"),
    ("discovery/1/shuf_dlas", [0.1], "shuf_dlas: got list of 1; expected a"),
    ("discovery/1/shuf_dlas/0", "x", "discovery[1].shuf_dlas[0]: got 'x'"),
    ("discovery/1/per_seed_real_dla/1", None, "per_seed_real_dla: got 1 seeds"),
    ("discovery/1/per_seed_real_dla/1/n", 0, "[1].n: got 0; expected an"),
    ("n_shuffle_seeds", 1, "n_shuffle_seeds: got 1; expected an integer, 2 to"),
    ("n_prompts", "192", "n_prompts: got '192'"),
    ("fdr_q", 1.0, "fdr_q: got 1.0; expected between 0 and 1"),
    ("swing_threshold", 0, "swing_threshold: got 0.0; expected above 0"),
    ("n_bootstrap", 0, "n_bootstrap: got 0"),
    ("path_patching", {}, "path_patching: got no heads"),
    ("path_patching/11.4", {}, "'11.4'; expected a head such as L11.H4"),
    ("path_patching/L9.H9", {}, "L9.H9: got a head that is not in discovery"),
    (f"{PATH}/per_pair", [], "per_pair: got list of 0"),
    (f"{PATH}/per_pair/2/clean_ld", None, "per_pair[2]: got no field"),
    (f"{PATH}/ci_total", [0.1], "ci_total: got list of 1; expected a list"),
    (f"{PATH}/alpha", 0, "alpha: got 0.0; expected between 0 and 1"),
    (f"{PATH}/seed_robustness_abs_diff", None, "no field 'seed_robustness_abs"),
    ("screened/top_by_dla/0", [1], "top_by_dla[0]: got 1 numbers"),
    ("screened/top_by_dla/0", [1, 2], "heads, 5 of them different"),
    ("expected/writers", ["L1"], "expected.writers[0]: got 'L1'"),
    ("expected/writers", ["L0.H0"] * 2, "writers: got 2 heads, 1 of them"),
    ("task", 3, "task: got 3; expected text"),
  ],
)  # fmt: skip
def test_what_is_no_cell_is_refused(tmp_path, place, value, words):
  content = released_cell.changed(made(), place, value)
  path = released_cell.write(tmp_path / "cell.json", content)
  with refusal(words, str(path)):
    read_released(path)


@pytest.mark.parametrize(
  ("text", "words"),
  [
    ("", "expected a readable JSON file"),
    ("{", "expected a readable JSON file"),
    ("[" * 100_000, "expected a readable JSON file"),
    ("[]", "got list of 0; expected an object"),
    ("3", "got 3; expected an object"),
    ('{"task": 1, "task": 2}', "an object with two fields 'task'"),
    ("\xff\xfe", "expected a readable JSON file"),
  ],
)
def test_what_is_no_json_is_refused(tmp_path, text, words):
  path = tmp_path / "cell.json"
  path.write_bytes(text.encode("latin-1"))
  with refusal(words):
    read_released(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
  with refusal("No such file", "expected a readable JSON file"):
    read_released(tmp_path / "cell.json")
  with refusal("expected a readable JSON file"):
    read_released(tmp_path)


def test_more_fields_are_no_fault(tmp_path):
  content = json.loads(json.dumps(made())) | {"comment": {"by": None}}
  path = released_cell.write(tmp_path / "cell.json", content)
  assert read_released(path).task == "made-up"
