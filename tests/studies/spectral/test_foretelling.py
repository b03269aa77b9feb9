"""Is it told when each signal finds the circuit, and for good?"""

import numpy as np
from spectral_series import series

from headjax.studies.spectral.foretelling import first_clear, foretold

BOTH = [(1, 0), (1, 1)]


def column(rows, name):
  """The values of one signal."""
  return [row[name] for row in rows]


def test_each_signal_is_as_good_as_its_ranks():
  rows = foretold(series([3, 1, 0, 4, 2]), "induction", BOTH)
  assert column(rows, "step") == [0, 10, 20, 40, 80]
  assert column(rows, "share") == [0, 0.125, 0.25, 0.5, 1]
  # Head (1, 1) ties with two others until its ratio rises.
  assert column(rows, "ratio") == [0.5, 0.75, 0.75, 0.75, 1]
  assert column(rows, "selectivity") == [0.5, 0.5, 0.75, 1, 1]
  np.testing.assert_array_equal(
    column(rows, "integral"), [np.nan, np.nan, 0.75, 0.75, 1]
  )


def test_the_first_clear_step_is_the_first_for_good():
  rows = foretold(series(), "induction", BOTH)
  assert first_clear(rows, "ratio") == 80
  assert first_clear(rows, "selectivity") == 40
  assert first_clear(rows, "ratio", clear=0.75) == 10
  one = foretold(series(), "induction", BOTH[:1])
  assert first_clear(one, "ratio") == 10
  assert first_clear(one, "integral") == first_clear(one, "selectivity") == 20
  lost = [{"step": 1, "ratio": 1.0}, {"step": 2, "ratio": 0.5}]
  assert first_clear(lost, "ratio") is None
  assert first_clear(lost + [{"step": 3, "ratio": 1.0}], "ratio") == 3


def test_a_signal_that_is_the_other_way_round_never_tells():
  rows = foretold(series(), "induction", [(0, 0), (0, 1)])
  assert column(rows, "ratio")[-1] == 0
  assert first_clear(rows, "ratio") is None


def test_all_heads_or_none_cannot_be_told_from_others():
  every = [(layer, head) for layer in (0, 1) for head in (0, 1)]
  assert foretold(series(), "induction", []) == []
  assert foretold(series(), "induction", every) == []
