"""Are tables what the results say, and their means those over seeds?"""

import numpy as np
import pytest
from saved_effects import saved, sets

from headjax import results
from headjax.statistics import seed_interval
from headjax.studies.exclusivity import concentration, tables
from headjax.studies.exclusivity.store import Store

RANDOM = np.random.default_rng(0)
EFFECTS = {
  (design, seed): RANDOM.normal(0.3, 1.0, (12, 3, 4))
  for design in ("learned@tiny", "write-common@tiny")
  for seed in (0, 1)
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
  folder = tmp_path_factory.mktemp("out")
  for (design, seed), effect in EFFECTS.items():
    run = f"{design.partition('@')[0]}-{seed}"
    about = {"run": run, "design": design, "seed": seed}
    for part in ("heads-discovery", "heads-evaluation", "self-repair"):
      for task in ("sva", "quote"):
        data = saved(
          effect * (1 + (part == "self-repair")), **about, part=part, task=task
        )
        results.save(data, folder / run / f"{part}-{task}.nc")
  return Store(folder)


def rows(store, name):
  return tables.TABLES[name](store, 100)


def test_every_run_and_task_has_a_row(store):
  found = rows(store, "concentration")
  assert len(found) == 8
  for row in found:
    wanted = concentration.summarise(
      saved(EFFECTS[row["design"], row["seed"]]), draws=100
    )
    assert row["neff"] == wanted["neff"]
    assert row["paper_neff"] is None
  assert list(found[0])[:5] == ["run", "design", "seed", "corpus", "task"]
  sizes = {row["parameters"] for row in rows(store, "performance")}
  assert sizes == {99}


def test_designs_are_compared_within_a_seed_and_task(store):
  found = rows(store, "differences")
  assert len(found) == 4
  for row in found:
    assert (row["a"], row["b"]) == ("learned@tiny", "write-common@tiny")
    values = [
      concentration.summarise(saved(EFFECTS[d, row["seed"]]), draws=9)["neff"]
      for d in (row["a"], row["b"])
    ]
    assert row["difference"] == pytest.approx(values[0] - values[1])


def test_lane_scores_are_corrected_for_the_tasks_of_the_run(store):
  for row in rows(store, "lanes"):
    assert row["p_corrected"] == pytest.approx(min(1, 2 * row["p"]))


def test_direct_effects_are_set_against_total_ones_of_the_same_run(store):
  for row in rows(store, "self-repair"):
    assert row["direct"] == pytest.approx(2 * row["total"])


def test_selectivity_needs_every_task_of_a_run(tmp_path):
  for task, top in (("sva", 1.5), ("quote", 0.5)):
    data = sets(
      {"lane 0": 0.2, "lane 1": 1.0, "top sva": top, "top quote": 0.3},
      lane_of=("source", [1, 0]),
    ).assign_coords(source=["sva", "quote"])
    attributes = saved(np.ones((1, 1))).attrs
    data = data.assign_attrs(attributes | {"part": "selectivity", "task": task})
    results.save(data, tmp_path / "learned-0" / f"selectivity-{task}.nc")
  found = rows(Store(tmp_path), "selectivity")
  own = {(r["task"], r["kind"]): r for r in found}
  assert own["sva", "heads"]["selectivity"] == pytest.approx(1.0)
  assert len(found) == 4


def test_an_empty_folder_has_no_rows(tmp_path):
  assert not any(make(Store(tmp_path), 9) for make in tables.TABLES.values())


def test_means_are_over_the_seeds_of_a_design(store):
  found = rows(store, "concentration")
  over = tables.over_seeds("concentration", found)
  for design in ("learned@tiny", "write-common@tiny"):
    values = [
      r["neff"] for r in found if (r["design"], r["task"]) == (design, "sva")
    ]
    [row] = [
      r
      for r in over
      if (r["design"], r["task"], r["quantity"]) == (design, "sva", "neff")
    ]
    wanted = seed_interval(values)
    assert (row["estimate"], row["low"]) == (wanted.estimate, wanted.low)
    assert row["n_seeds"] == 2
  named = {row["quantity"] for row in over}
  assert "top_head" not in named and "seed" not in named
  assert not [name for name in named if name.startswith("paper")]


def test_means_keep_the_heads_apart_and_leave_out_what_has_no_seed(store):
  over = tables.over_seeds("heads", rows(store, "heads"))
  assert {row["at"] for row in over} == {
    f"{layer} {head}" for layer in range(3) for head in range(4)
  }
  assert tables.over_seeds("interaction-pairs", [{"seed": 0, "x": 1}]) == []
  row = {"run": "m", "design": "m", "seed": -1, "task": "sva", "x": 1.0}
  assert tables.over_seeds("lanes", [row]) == []
