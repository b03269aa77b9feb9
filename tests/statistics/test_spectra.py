"""Do ratios count directions, and integrals the time that they are held?"""

import numpy as np
import pytest
from one_line import refusal

from headjax.statistics import spectra


def slow_ratio(rows, kind):
  """From the singular values of the rows themselves."""
  power = np.linalg.svd(rows, compute_uv=False) ** 2
  share = power / power.sum()
  if kind == "ipr":
    return 1 / (share**2).sum()
  return np.exp(-sum(p * np.log(p) for p in share if p > 0))


@pytest.mark.parametrize("kind", spectra.KINDS)
@pytest.mark.parametrize("k", [1, 3, 7])
def test_orthonormal_rows_are_as_many_as_they_are(kind, k):
  rows = np.linalg.qr(np.random.default_rng(k).normal(size=(7, 7)))[0][:k]
  found = spectra.participation_ratio(spectra.gram(5 * rows), kind)
  assert found == pytest.approx(k, rel=1e-9)


@pytest.mark.parametrize("kind", spectra.KINDS)
def test_sums_of_chunks_are_the_rows_own_ratio(kind):
  # Not centred: a mean far from 0 is a direction.
  rows = np.random.default_rng(0).normal(size=(50, 2, 3, 6)) + 2
  total = sum(spectra.gram(part) for part in np.split(rows, [7, 20]))
  found = spectra.participation_ratio(total, kind)
  wanted = [[slow_ratio(rows[:, i, j], kind) for j in range(3)] for i in (0, 1)]
  np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_a_head_that_writes_nothing_fills_nothing():
  assert spectra.participation_ratio(np.zeros((2, 4, 4))).tolist() == [0, 0]
  assert spectra.participation_ratio(np.zeros((4, 4)), "ipr") == 0


def test_a_constant_ratio_integrates_to_its_height_over_log_time():
  at = [0, 3.0, 10.0, 11.0, 500.0]
  found = spectra.trajectory_integral(np.full((5, 2), 4.5), at)
  np.testing.assert_allclose(found, 3.5 * np.log(500 / 3), rtol=1e-12)
  steps = spectra.trajectory_integral(np.full(5, 4.5), at, logarithmic=False)
  assert steps == pytest.approx(3.5 * 497)


def test_what_is_below_one_counts_as_nothing():
  at = np.exp([0.0, 1.0, 2.0])
  assert spectra.trajectory_integral([0.0, 0.5, 3.0], at) == pytest.approx(1)


def test_points_must_ascend():
  with refusal("at: got [1.0, 5.0, 5.0]; expected ascending"):
    spectra.trajectory_integral([1, 2, 3], [1, 5, 5])
  with refusal("at: got 1 points after 0"):
    spectra.trajectory_integral([1, 2], [0, 5])
  with refusal("at: got shape (2,) beside"):
    spectra.trajectory_integral([1, 2, 3], [1, 5])
  with refusal("gram: got shape (2, 3)"):
    spectra.participation_ratio(np.zeros((2, 3)))
  with refusal("gram: got numbers that are not finite"):
    spectra.participation_ratio(np.full((2, 2), np.nan))


def test_heads_are_ranked_and_the_curve_bends_where_it_falls():
  values = np.array([[1.0, 9.0], [9.0, 0.5]])
  assert spectra.ranking(values).tolist() == [[0, 1], [1, 0], [0, 0], [1, 1]]
  assert spectra.elbow([9, 9.5, 10, 0.1, 0.2, 0.3, 0]) == 3
  assert spectra.elbow([3, 2, 1, 0]) == 4
  assert spectra.elbow([2, 2, 2]) == 3
  assert spectra.spread([[1.0, 5], [3, 2]]).tolist() == [2, 3]


def test_a_share_of_the_heads_is_kept():
  assert spectra.n_kept(144) == 26
  assert spectra.n_kept(144, 0.208) == 30 and spectra.n_kept(384, 0.208) == 80
  assert spectra.n_kept(2) == 1
  with refusal("share: got 0"):
    spectra.n_kept(10, 0)
