"""Does every combination of conditions get its own name?"""

import numpy as np
import pytest
from one_line import refusal

from headjax.statistics.partitions import partitions
from headjax.statistics.resampling import Interval
from headjax.studies.writers.lesions import (
  VERDICTS,
  change,
  sign_shuffle,
  split_groups,
  verdict,
)


def sure(estimate):
  return Interval(estimate, estimate - 0.01, estimate + 0.01)


def unsure(estimate):
  return Interval(estimate, estimate - 1, estimate + 1)


@pytest.mark.parametrize(
  ("writers", "cancellers", "both", "name"),
  [
    (sure(-0.25), sure(0.29), sure(0.0), "canonical"),
    (sure(-0.10), sure(0.10), sure(0.15), "canonical"),
    (sure(-0.25), sure(0.09), sure(0.0), "writers_dominate"),
    (sure(-0.25), unsure(0.5), sure(0.0), "writers_dominate"),
    (sure(-0.09), sure(0.3), sure(0.0), "cancellers_dominate"),
    (unsure(-0.5), sure(0.3), sure(0.0), "cancellers_dominate"),
    (sure(-0.25), sure(0.29), sure(0.54), "opposite_no_attenuation"),
    (sure(-0.25), sure(0.29), sure(-0.6), "opposite_no_attenuation"),
    (sure(-0.25), sure(-0.29), sure(-0.5), "co_writers"),
    (sure(0.25), sure(-0.29), sure(0.0), "co_writers"),
    (sure(-0.09), sure(0.09), sure(0.0), "none"),
    (unsure(-0.5), unsure(0.5), sure(0.0), "none"),
    (Interval(0.0, 0.0, 0.0),) * 3 + ("none",),
  ],
)
def test_names_follow_from_the_conditions(writers, cancellers, both, name):
  found = verdict(writers, cancellers, both)
  assert found.name == name and name in VERDICTS


def test_the_published_cells_have_their_verdicts():
  # Paper C, zero ablation: without W, without C, without both.
  for changes in [
    (-0.248, 0.288, 0.002),
    (-0.558, 0.160, -0.430),
    (-0.321, 0.150, -0.128),
    (-0.391, 0.165, -0.144),
    (-0.993, 0.206, -0.784),
    (-0.486, 0.130, -0.375),
  ]:
    assert verdict(*map(sure, changes)).name == "canonical"


def test_conditions_are_told_one_by_one():
  found = verdict(sure(-0.4), sure(0.3), sure(-0.1))
  assert found.writers_matter and found.cancellers_matter
  assert found.opposite and found.attenuated and found.relaxed
  assert found.interaction == pytest.approx(0.0, abs=1e-12)
  found = verdict(sure(-0.4), sure(0.3), sure(0.9))
  assert not found.attenuated and found.relaxed
  assert found.interaction == pytest.approx(0.8)
  found = verdict(sure(0.4), sure(0.3), sure(0.7))
  assert not found.writers_matter and not found.opposite and not found.relaxed


def test_the_floor_is_an_argument():
  changes = sure(-0.25), sure(0.29), sure(0.0)
  assert verdict(*changes, floor=0.26).name == "cancellers_dominate"


def test_a_change_is_without_minus_whole():
  base = np.random.default_rng(0).normal(size=50)
  found = change(base, base - 0.3 + 0.01 * base, draws=500)
  assert found.estimate == pytest.approx(-0.3 + 0.01 * base.mean())
  assert found.low < found.estimate < found.high < 0
  nothing = change(base, base)
  assert (nothing.estimate, nothing.low, nothing.high) == (0.0, 0.0, 0.0)


def test_roles_are_exchanged_and_the_sizes_stay():
  heads = [(0, 1), (1, 0), (1, 2), (2, 2)]
  splits = partitions([True, False, True, False])
  first, second = split_groups(heads, splits, (3, 4))
  assert first.shape == second.shape == (6, 3, 4)
  assert set(map(tuple, np.argwhere(first[0]))) == {heads[0], heads[2]}
  union = {tuple(map(int, at)) for at in np.argwhere(first[3] | second[3])}
  assert union == set(heads) and not (first & second).any()
  assert set(first.sum(axis=(1, 2))) == {2}


def test_opposing_roles_are_rarer_than_other_splits():
  effects = np.array([-0.5, -0.4, -0.3, 0.5, 0.4, 0.3, 0.6])
  splits = partitions(effects < 0)
  base = np.random.default_rng(0).normal(size=20)
  first = base[:, None] + splits.first @ effects
  second = base[:, None] + ~splits.first @ effects
  found = sign_shuffle(base, first, second, splits)
  assert found.difference == pytest.approx(-1.2 - 1.8)
  assert (found.splits, found.exhaustive) == (35, True)
  assert found.p == pytest.approx(1 / 35)
  assert sign_shuffle(base, second, first, splits).p == found.p
  alike = sign_shuffle(base, base[:, None] + np.ones(35), second * 0, splits)
  assert alike.p == 1.0


def test_other_examples_are_refused():
  with refusal("lesioned: got shape (3,); expected (4,) as in base"):
    change(np.zeros(4), np.zeros(3))
