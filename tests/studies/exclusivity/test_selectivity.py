"""Is a set's effect on its own task told from that on the others?"""

import jax
import numpy as np
import pytest
from helpers import GPT2, random_model, random_pairs
from saved_effects import saved, sets

from headjax.studies.exclusivity import selectivity

OWN = {"lane_of": ("source", [1, 0])}


def on_task(means, base=2.0):
  data = sets(means, base, **OWN)
  return data.assign_coords(source=["sva", "quote"])


SVA = on_task({"lane 0": 0.2, "lane 1": 1.0, "top sva": 1.5, "top quote": 0.3})
QUOTE = on_task(
  {"lane 0": 4.0, "lane 1": 0.4, "top sva": 0.8, "top quote": 3.0}, base=4.0
)


def test_rows_tell_the_share_of_the_margin():
  rows = selectivity.summarise(SVA)
  assert [(r["source"], r["kind"], r["set"]) for r in rows] == [
    ("sva", "heads", "top sva"), ("sva", "lane", "lane 1"),
    ("quote", "heads", "top quote"), ("quote", "lane", "lane 0"),
  ]  # fmt: skip
  shares = [row["margin_share"] for row in rows]
  np.testing.assert_allclose(shares, [0.75, 0.5, 0.15, 0.1])
  np.testing.assert_allclose([r["effect"] for r in rows], [1.5, 1.0, 0.3, 0.2])


def test_selectivity_is_own_less_others():
  rows = [
    {"task": task} | row
    for task, data in (("sva", SVA), ("quote", QUOTE))
    for row in selectivity.summarise(data)
  ]
  found = {(r["source"], r["kind"]): r for r in selectivity.selectivity(rows)}
  heads = found["sva", "heads"]
  assert (heads["own"], heads["others"]) == pytest.approx((0.75, 0.2))
  assert heads["selectivity"] == pytest.approx(0.55)
  lane = found["quote", "lane"]
  assert (lane["own"], lane["others"]) == pytest.approx((1.0, 0.1))
  one_task = [row for row in rows if row["task"] == "sva"]
  assert selectivity.selectivity(one_task) == []


def test_a_lane_is_set_against_its_heads():
  single = saved([[0.5, 0.1], [-0.2, 0.7]])
  rows = selectivity.lanes(SVA, single)
  assert rows == [
    {"lane": 0, "joint": pytest.approx(0.2), "sum": pytest.approx(0.3),
     "margin_share": pytest.approx(0.1)},
    {"lane": 1, "joint": pytest.approx(1.0), "sum": pytest.approx(0.8),
     "margin_share": pytest.approx(0.5)},
  ]  # fmt: skip


def test_lanes_and_top_heads_of_all_tasks_are_patched(monkeypatch):
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, [6, 7], [2, 3])
  e = np.zeros((3, 4))
  e[0, 1], e[1, 3], e[2, 3], e[0, 2] = 3.0, 2.0, 2.0, -9.0
  effects = {"sva": saved(e).effect, "quote": saved(e[:, ::-1]).effect}
  data = selectivity.measure(model, pairs, effects)
  assert data["set"].values.tolist() == [
    "lane 0", "lane 1", "lane 2", "lane 3", "top sva", "top quote"
  ]  # fmt: skip
  assert data.lane_of.values.tolist() == [3, 0]
  members = data.members.sel(set="top sva").values
  assert np.argwhere(members).tolist() == [[0, 1], [1, 3], [2, 3]]
