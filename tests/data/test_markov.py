import numpy as np
import pytest

from headjax.data.markov import (
  nontrivial_eigenvalues,
  sequences,
  transition_matrix,
)


def test_the_matrix_is_the_papers():
  a, b = 0.75, 0.25
  rows = [[a, b, 0, 0], [0, a, b, 0], [0, 0, a, b], [b, 0, 0, a]]
  np.testing.assert_allclose(transition_matrix(), rows)


@pytest.mark.parametrize("stay", [0.75, 0.6])
def test_the_eigenvalues_are_those_of_the_matrix(stay):
  found = [1, *nontrivial_eigenvalues(stay)]
  expected = np.linalg.eigvals(transition_matrix(stay))
  order = lambda values: np.sort_complex(np.round(values, 9))  # noqa: E731
  np.testing.assert_allclose(order(found), order(expected), atol=1e-8)
  papers = [0.75 + 0.25j, 0.75 - 0.25j, 0.5]
  np.testing.assert_allclose(nontrivial_eigenvalues(), papers, atol=1e-12)


def test_sequences_move_as_the_matrix_says():
  found = sequences(4000, 11, seed=0)
  assert found.shape == (4000, 11) and found.dtype == np.int32
  counts = np.zeros((4, 4))
  np.add.at(counts, (found[:, :-1], found[:, 1:]), 1)
  shares = counts / counts.sum(1, keepdims=True)
  np.testing.assert_allclose(shares, transition_matrix(), atol=0.012)
  starts = np.bincount(found[:, 0], minlength=4) / 4000
  np.testing.assert_allclose(starts, 0.25, atol=0.03)
  assert not np.array_equal(found, sequences(4000, 11, seed=1))
  np.testing.assert_array_equal(found, sequences(4000, 11, seed=0))


def test_a_certain_move_is_refused():
  with pytest.raises(ValueError, match="stay: got 1"):
    sequences(1, 2, 0, stay=1)
