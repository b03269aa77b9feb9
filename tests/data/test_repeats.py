"""Are repeated tokens random, repeated, and nothing special?"""

import numpy as np
from one_line import refusal

from headjax.data.repeats import repeated


def test_each_row_is_said_twice():
  found = repeated(5000, 6, 20, seed=3)
  assert found.shape == (6, 40) and found.dtype == np.int32
  np.testing.assert_array_equal(found[:, :20], found[:, 20:])
  assert found.min() >= 50 and found.max() < 5000
  assert len(np.unique(found)) > 100
  np.testing.assert_array_equal(found, repeated(5000, 6, 20, seed=3))
  assert (found != repeated(5000, 6, 20, seed=4)).any()


def test_a_first_token_begins_each_row_once():
  found = repeated(5000, 2, 20, bos=1)
  assert found.shape == (2, 41) and (found[:, 0] == 1).all()
  np.testing.assert_array_equal(found[:, 1:], repeated(5000, 2, 20))


def test_small_vocabularies_are_used_whole():
  assert set(repeated(3, 10, 20).ravel().tolist()) == {0, 1, 2}


def test_no_tokens_are_refused():
  with refusal("length, n_examples", "0, 4"):
    repeated(5000, length=0)
