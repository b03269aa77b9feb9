import numpy as np
import pytest

from headjax.data.modular import additions


def test_every_sum_is_in_one_part():
  found = additions(53)
  assert len(found.train) == 1404 and len(found.test) == 1405
  rows = np.concatenate(found)
  assert len(np.unique(rows, axis=0)) == 53**2
  np.testing.assert_array_equal(rows[:, 2], (rows[:, 0] + rows[:, 1]) % 53)


def test_the_seed_draws_the_split():
  assert not np.array_equal(additions(11).train, additions(11, seed=1).train)
  np.testing.assert_array_equal(additions(11).train, additions(11).train)
  assert len(additions(11, share=0.25).train) == 30


def test_bad_input_is_refused():
  with pytest.raises(ValueError, match="p: got 2"):
    additions(2)
  with pytest.raises(ValueError, match="share: got 1"):
    additions(5, share=1)
