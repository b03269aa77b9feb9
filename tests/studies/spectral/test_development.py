"""Is the first checkpoint found at which most of the circuit is there?"""

import numpy as np
import pytest
from spectral_series import series

from headjax.studies.spectral import development


def test_recall_grows_to_the_final_circuit():
  table = development.recall(series([4, 3, 2, 1, 0]), "induction")
  assert [r["step"] for r in table] == [0, 10, 20, 40, 80]
  assert [r["recall"] for r in table] == [0, 0, 0, 0.5, 1]
  assert [r["heads"] for r in table] == [0, 0, 0, 1, 2]
  assert np.isnan(table[0]["precision"]) and table[4]["precision"] == 1
  # The floor is at least 2, and 1.5 of the null is less.
  assert [r["floor"] for r in table] == [2] * 5
  assert [r["lenient_recall"] for r in table] == [0, 0, 0.5, 1, 1]
  first = development.first_detection(table)
  assert (first["step"], first["share"]) == (80, 1)
  early = development.first_detection(table, column="lenient_recall")
  assert (early["step"], early["share"]) == (40, 0.5)


def test_a_given_circuit_may_never_be_found():
  table = development.recall(series(), "induction", [(0, 1)])
  assert [r["recall"] for r in table] == [0] * 5
  assert development.first_detection(table) is None
  none = development.recall(series(), "self")
  assert np.isnan([r["recall"] for r in none]).all()
  assert development.first_detection(none) is None


def test_circuits_are_compared_as_sets():
  assert development.jaccard([(0, 1), (1, 1)], [(1, 1), (2, 0)]) == 1 / 3
  assert np.isnan(development.jaccard([], []))
  shift = development.data_shift(series([0, 3]), series(), "induction")
  assert shift["before"] == [(1, 0)] and shift["after"] == [(1, 0), (1, 1)]
  assert shift["jaccard"] == 0.5


def test_shares_of_classes_are_those_of_heads():
  table = development.class_shares(series())
  assert [r["first"] for r in table] == [0.25] * 5
  assert [r["induction"] for r in table] == [0, 0, 0, 0.25, 0.5]
  assert [r["conserved"] for r in table] == [0, 0, 0.25, 0.5, 0.5]
  shares = development.class_shares(series())[4]
  total = sum(v for k, v in shares.items() if k not in ("step", "conserved"))
  assert total == pytest.approx(1)


def test_selectivity_is_followed_head_by_head():
  table = development.along(series(), "induction", [(1, 1)])
  assert [r["selectivity"] for r in table] == [1, 1, 1, 5, 55]
  assert [r["ratio"] for r in table] == [1, 1, 1, 1, 4]
