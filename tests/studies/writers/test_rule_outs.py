"""Does every check say yes where it should, and no where it should not?"""

import itertools

import numpy as np
import pytest
from one_line import refusal

from headjax.statistics.resampling import Interval
from headjax.studies.writers import rule_outs

HEADS = list(itertools.product(range(3), range(4)))


def test_the_overlap_is_that_of_all_ways_to_draw_a_group():
  others, size = HEADS[:5], 3
  counts = [
    len(set(others) & set(group))
    for group in itertools.combinations(HEADS, size)
  ]
  found = rule_outs.overlap(others, [HEADS[0], HEADS[4], HEADS[9]], 12)
  assert found.count == 2
  assert found.expected == pytest.approx(np.mean(counts))
  assert found.sd == pytest.approx(np.std(counts))
  assert found.p_more == pytest.approx(np.mean(np.array(counts) >= 2))
  every = rule_outs.overlap(HEADS, HEADS[:3], 12)
  assert (every.count, every.sd, every.deviate) == (3, 0, 0)


def test_many_cells_at_chance_are_equivalent_and_one_cannot_be():
  even = rule_outs.Overlap(2, 2.0, 1.0, 0.5)
  more = rule_outs.Overlap(4, 2.0, 1.0, 0.05)
  assert rule_outs.equivalence([even]) == pytest.approx(0.1587, abs=1e-4)
  assert rule_outs.equivalence([even] * 6) < 0.01
  assert rule_outs.equivalence([more] * 6) > 0.99
  less = rule_outs.Overlap(0, 2.0, 1.0, 1.0)
  assert rule_outs.equivalence([less] * 6) > 0.99
  with refusal("overlaps: got 0"):
    rule_outs.equivalence([])


def test_importance_is_named_by_the_ratio():
  def of(*values):
    return Interval(*[np.array(values)] * 3)

  rows = rule_outs.importance(
    HEADS[:6],
    of(-0.5, 0.5, 0.3, 0.14, 0.2, 0.0),
    of(0.1, 0.1001, -0.1, 0.1, 0.0, 0.0),
  )
  assert [row["kind"] for row in rows] == [
    "rule-specific", "between", "between", "generally important",
    "rule-specific", "no effect",
  ]  # fmt: skip
  assert rows[0]["ratio"] == pytest.approx(5)
  assert rows[0]["head"] == "L0.H0"


def test_changes_are_those_of_each_head_over_all_conditions():
  rng = np.random.default_rng(0)
  before = 1 + 0.1 * rng.normal(size=(40, 3, 4))
  after = before + 0.3 * rng.normal(size=(2, 40, 3, 4))
  after[:, :, 2, 1] -= 0.8
  rows = rule_outs.head_changes(before, after, [(2, 1), (0, 0)], draws=500)
  change = (after.mean(axis=0) - before)[:, 2, 1]
  assert rows[0]["change"] == pytest.approx(change.mean())
  assert rows[0]["share"] == pytest.approx(
    change.mean() / before[:, 2, 1].mean()
  )
  assert rows[0]["sure"] and rows[0]["high"] < 0
  assert not rows[1]["sure"]
  assert rows[1]["low"] < 0 < rows[1]["high"]


def test_the_most_opposed_earlier_writers_come_first():
  writes = np.zeros((3, 4, 2))
  writes[0, 0], writes[0, 1], writes[1, 0] = (9.0, 1.0), (-1.0, 0.1), (0.0, 1.0)
  writes[2, 2] = (-5.0, 0.0)  # not before the head
  writes[2, 3] = (1.0, 0.0)
  top = np.zeros((3, 4, 2))
  writers = [(0, 0), (0, 1), (1, 0), (2, 2)]
  for sign in (1, -1):
    top[2, 3] = (sign, 0.0)
    found = rule_outs.upstream_writers((2, 3), writers, writes, top)
    assert found == [(0, 1), (1, 0), (0, 0)]
  assert rule_outs.upstream_writers((2, 3), writers, writes, top, 1) == [(0, 1)]
  assert rule_outs.upstream_writers((0, 3), writers, writes, top) == []
