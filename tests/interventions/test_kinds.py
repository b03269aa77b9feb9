"""Are the keys of each kind those of its definition?"""

import numpy as np

from headjax.interventions.kinds import KINDS, targets


def test_targets_of_a_sequence_by_hand():
  found = np.asarray(targets(np.array([[7, 8, 7, 7, 9, 7]]), np.array([6])))
  by_kind = dict(zip(KINDS, found[:, 0], strict=True))
  assert np.argwhere(by_kind["induction"]).tolist() == [
    [2, 1], [3, 1], [5, 1], [5, 3], [5, 4]
  ]  # fmt: skip
  assert np.argwhere(by_kind["duplicate"]).tolist() == [
    [2, 0], [3, 0], [3, 2], [5, 0], [5, 2], [5, 3]
  ]  # fmt: skip
  assert by_kind["local"].sum() == 1 and (by_kind["local"][5, :4] == 0.25).all()
  assert not found[:, 0, 0].any()


def test_padding_is_no_query_and_no_key():
  ids = np.array([[7, 8, 7, 7, 9, 7], [7, 8, 7, 0, 0, 0]])
  found = np.asarray(targets(ids, np.array([6, 3])))
  assert not found[:, 1, 3:].any() and not found[:, 1, :, 3:].any()
  short = np.asarray(targets(ids[1:, :3], np.array([3])))
  np.testing.assert_array_equal(found[:, 1, :3, :3], short[:, 0])
