import numpy as np
import pytest

from headjax.geometry.cores import (
  Core,
  Moments,
  core_from_moments,
  core_from_rows,
  principal_axes,
  random_core,
)


def projector(columns):
  return columns @ columns.T


def case(n=60, d=9, k=3, seed=0):
  rng = np.random.default_rng(seed)
  spread = np.linspace(3, 1, d)
  H = rng.normal(size=(n, d)) * spread + 5
  return H, rng.normal(size=(n, k, d))


def planted(n=400, d=12, seed=0):
  """Directions 0, 1 vary and are read; 2..5 vary only; 6..9 are read only."""
  rng = np.random.default_rng(seed)
  turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
  H, J = np.zeros((n, d)), np.zeros((n, 4, d))
  H[:, :2] = rng.normal(size=(n, 2))
  H[:, 2:6] = 10 * rng.normal(size=(n, 4))
  J[:, :, :2] = rng.normal(size=(n, 4, 2))
  J[:, :, 6:10] = 10 * rng.normal(size=(n, 4, 4))
  return H @ turn.T + 7, J @ turn.T, turn


def moments(H, J, sizes=(7, 1, 20)):
  found = Moments(H.shape[1])
  start = 0
  for size in (*sizes, len(H)):
    found.add_activations(H[start : start + size])
    start += size
  found.add_jacobians(J[: len(J) // 2])
  found.add_jacobians(J[len(J) // 2 :])
  return found


def test_streamed_moments_are_those_of_all_rows_at_once():
  H, J = case()
  found = moments(H + 1e4, J)
  np.testing.assert_allclose(found.mean, H.mean(0) + 1e4, rtol=1e-12)
  np.testing.assert_allclose(found.covariance, np.cov(H.T), rtol=1e-8)
  expected = sum(j.T @ j for j in J) / len(J)
  np.testing.assert_allclose(found.observability, expected, rtol=1e-12)


@pytest.mark.parametrize("n", [60, 6])  # 6 < d: more dimensions than samples
def test_both_forms_agree(n):
  H, J = case(n=n)
  rows, streamed = core_from_rows(H, J), moments(H, J, (2, 1)).core()
  np.testing.assert_allclose(
    rows.singular_values, streamed.singular_values, rtol=1e-10
  )
  assert len(rows.singular_values) == min(n - 1, 9)
  for r in range(1, len(rows.singular_values) + 1):
    np.testing.assert_allclose(
      projector(rows.span(r)), projector(streamed.span(r)), atol=1e-10
    )


def test_singular_values_are_those_of_the_product():
  H, J = case()
  s = np.linalg.svd((H - H.mean(0)) @ J.reshape(-1, 9).T, compute_uv=False)[:9]
  scaled = core_from_rows(H, J).singular_values * np.sqrt(59 * 60)
  np.testing.assert_allclose(scaled, s, rtol=1e-12)


@pytest.mark.parametrize("form", ["rows", "moments"])
def test_only_directions_that_vary_and_are_read_are_found(form):
  H, J, turn = planted()
  core = core_from_rows(H, J) if form == "rows" else moments(H, J).core()
  # Sampled activations correlate a little, and may do so with what is read.
  assert core.rank(0.999) == 2 == len(core.singular_values)
  # The image of Cov: where the first two go, up to those correlations.
  shares = np.linalg.norm(turn.T @ core.basis, axis=1) ** 2
  assert np.isclose(shares.sum(), 2)
  assert shares[6:].max() < 1e-12


def test_a_planted_subspace_is_found_exactly_when_nothing_correlates():
  _, J, turn = planted()
  variances = np.repeat([2.0, 100.0, 0.0], [2, 4, 6])
  covariance = turn @ np.diag(variances) @ turn.T
  observability = sum(j.T @ j for j in J) / len(J)
  core = core_from_moments(covariance, observability)
  np.testing.assert_allclose(
    projector(core.basis), projector(turn[:, :2]), atol=1e-10
  )


def test_rank_deficient_activations_give_a_core_in_their_span():
  rng = np.random.default_rng(1)
  span = np.linalg.qr(rng.normal(size=(9, 3)))[0]
  H = rng.normal(size=(50, 3)) @ span.T
  J = rng.normal(size=(50, 5, 9))
  for core in (core_from_rows(H, J), moments(H, J).core()):
    assert core.basis.shape == (9, 3)
    np.testing.assert_allclose(
      projector(core.basis), projector(span), atol=1e-9
    )
    np.testing.assert_allclose(core.basis.T @ core.basis, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("constant", ["outputs", "activations"])
def test_what_is_constant_has_a_core_of_rank_zero(constant):
  H, J = case()
  H, J = (H, 0 * J) if constant == "outputs" else (0 * H, J)
  for core in (core_from_rows(H, J), moments(H, J).core()):
    assert core.basis.shape == (9, 0)
    assert core.rank(0.99) == 0


def test_the_rank_is_the_least_that_carries_the_share():
  core = Core(np.eye(4), np.array([3.0, 2.0, 1.0, 0.5]))  # squares 9 4 1 .25
  ranks = [core.rank(share) for share in (0.6, 0.9, 0.95, 0.999, 1)]
  assert ranks == [1, 2, 3, 4, 4]
  assert core.span(2).shape == (4, 2)


def test_controls_are_orthonormal_and_ordered():
  control = random_core(7, 3, seed=2)
  np.testing.assert_allclose(control.T @ control, np.eye(3), atol=1e-12)
  assert not np.allclose(control, random_core(7, 3, seed=3))
  axes = principal_axes(np.diag([1.0, 5.0, 2.0]))
  np.testing.assert_allclose(np.abs(axes), np.eye(3)[:, [1, 2, 0]], atol=1e-12)


def bad(field):
  H, J = case(n=4)
  return {
    "H: got shape": lambda: core_from_rows(H[0], J),
    "H: got 1 rows": lambda: core_from_rows(H[:1], J),
    "H: got 36 numbers": lambda: core_from_rows(H * np.nan, J),
    "J: got shape": lambda: core_from_rows(H, J[..., :2]),
    "J: got no derivatives": lambda: Moments(3).observability,
    "share: got 0": lambda: core_from_rows(H, J).rank(0),
    "rank: got 9": lambda: core_from_rows(H, J).span(9),
  }[field]


@pytest.mark.parametrize("message", [
  "H: got shape", "H: got 1 rows", "H: got 36 numbers", "J: got shape",
  "J: got no derivatives", "share: got 0", "rank: got 9",
])  # fmt: skip
def test_bad_input_is_refused(message):
  with pytest.raises(ValueError, match=message):
    bad(message)()
