"""Are the rows those of the paper, and do the marks stand where they should?"""

import numpy as np
import pytest
from one_line import refusal

from headjax.data import probes
from headjax.data.induction import natural_induction, random_induction


def released_rows(n, seed):
  """The published recipe, written again step by step."""
  rng = np.random.RandomState(seed)
  tokens, answers, places = [], [], []
  for _ in range(n):
    row = list(rng.randint(100, 10000, size=256))
    a, b = (int(x) for x in rng.choice(np.arange(100, 10000), 2, replace=False))
    ab = int(rng.randint(20, 128))
    row[ab : ab + 2] = [a, b]
    for token, own in ((a, ab), (b, ab + 1)):
      for k in range(256):
        if k != own and row[k] == token:
          row[k] = int(rng.randint(100, 10000))
    row[255] = a
    tokens.append(row)
    answers.append(b)
    places.append(ab)
  return np.array(tokens), np.array(answers), np.array(places)


def test_random_rows_are_those_of_the_recipe():
  probe = random_induction(50257, 1024, 60)
  tokens, answers, places = released_rows(60, 42)
  np.testing.assert_array_equal(probe.tokens, tokens)
  np.testing.assert_array_equal(probe.answer, answers)
  np.testing.assert_array_equal(probe.targets["induction"][:, 0], places + 1)
  np.testing.assert_array_equal(probe.targets["duplicate"][:, 0], places)
  assert (probe.targets["previous"] == 254).all()
  assert probe.targets["local"][0].tolist() == [253, 252, 251, 250]
  assert probe.chance == 1 / 9900
  # A and B stand nowhere else.
  assert ((probe.tokens == probe.tokens[:, -1:]).sum(1) == 2).all()
  assert ((probe.tokens == probe.answer[:, None]).sum(1) == 1).all()


def test_a_small_vocabulary_leaves_its_first_hundredth_out():
  probe = random_induction(500, 64, 200, length=64)
  assert probe.tokens.min() == 5 and probe.tokens.max() == 499
  place = probe.targets["duplicate"][:, 0]
  valid = place >= 0
  assert valid.mean() > 0.9
  assert place[valid].min() >= 5 and place.max() < 32
  row = np.arange(len(probe))
  after = probe.tokens[row, probe.targets["induction"][:, 0]]
  np.testing.assert_array_equal(after[valid], probe.answer[valid])


def test_what_cannot_be_drawn_is_refused():
  with refusal("vocabulary: got 199 tokens; expected at least 200"):
    random_induction(199, 1024)
  with refusal("length: got 256 tokens; expected 64 to 128"):
    random_induction(512, 128)
  with refusal("length: got 63 tokens"):
    random_induction(512, 128, length=63)


def test_natural_rows_take_the_first_repeat_and_its_latest_return():
  row = np.arange(300, 360)
  row[[4, 30, 50]] = 999  # T, S = 305 at 5
  row[[2, 40]] = 7  # too small an id
  other = np.arange(300, 360)
  probe = natural_induction(np.stack([other, row]))
  assert len(probe) == 1
  assert (probe.query[0], probe.answer[0]) == (50, 305)
  assert probe.targets["duplicate"].tolist() == [[4]]
  assert probe.targets["induction"].tolist() == [[5]]
  assert probe.targets["previous"].tolist() == [[49]]
  with refusal("rows: got 1 rows without a token"):
    natural_induction(other[None])


def test_a_repeat_within_the_gap_does_not_count():
  row = np.arange(300, 360)
  row[[4, 20]] = 999
  with refusal("rows: got 1 rows"):
    natural_induction(row[None])
  assert natural_induction(row[None], gap=10).query.tolist() == [20]


def test_the_baseline_is_the_published_draw():
  probe = random_induction(50257, 1024, 3)
  rng, keys = np.random.RandomState(0), []
  while len(keys) < 50:
    key = rng.randint(1, 255)
    if key not in keys and key not in (254, 253, 252, 251, 250):
      keys.append(key)
  assert probes.baseline_keys(probe).tolist() == [keys] * 3


def test_baselines_of_other_queries_are_of_their_own_and_leave_targets_out():
  row = np.arange(300, 400)
  row[[4, 30]] = 999
  wide = np.arange(300, 400)
  wide[[20, 90]] = 888
  probe = natural_induction(np.stack([row, wide]))
  keys = probes.baseline_keys(probe)
  short = keys[0][keys[0] >= 0]
  assert sorted(short) == [k for k in range(1, 25) if k not in (4, 5)]
  assert len(set(keys[1])) == 50
  assert not set(keys[1]) & {0, 20, 21, *range(85, 100)}


def test_only_what_the_query_sees_is_in_the_digest():
  row = np.arange(300, 360)
  row[[4, 50]] = 999
  other = row.copy()
  other[55] = 1
  same, third = natural_induction(other[None]), row.copy()
  third[10] = 1
  probe = natural_induction(row[None])
  assert probe.digest == same.digest
  assert probe.digest != natural_induction(third[None]).digest
  assert probe.select([0]).digest == probe.digest


@pytest.mark.parametrize("targets", [True, False])
def test_eligible_keys_stand_for_no_kind(targets):
  probe = random_induction(50257, 1024, 2)
  free = probes.eligible(probe, targets=targets)
  place = probe.targets["duplicate"][0, 0]
  assert free[0].sum() == 249 - 2 * (not targets)
  assert bool(free[0, place]) is bool(free[0, place + 1]) is targets
  assert not free[:, [0, 250, 251, 252, 253, 254, 255]].any()
