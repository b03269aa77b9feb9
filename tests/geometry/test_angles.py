import jax
import jax.numpy as jnp
import numpy as np
import one_line
import pytest
import scipy.linalg
from subspace_cases import normal, planes, rotation

from headjax.geometry import (
  Basis,
  orthonormal_basis,
  pairwise_projection_kernel,
  principal_angles,
  projection_kernel,
  projection_share,
)


def scipy_angles(a, b):
  return np.sort(scipy.linalg.subspace_angles(a, b))


@pytest.mark.parametrize("widths", [(3, 3), (2, 5), (5, 2), (1, 6)])
def test_angles_are_scipys(x64, widths):
  a, b = normal(4, 9, widths[0]), normal(4, 9, widths[1], seed=1)
  angles = principal_angles(a, b)
  assert angles.shape == (4, min(widths))
  for i in range(4):
    np.testing.assert_allclose(angles[i], scipy_angles(a[i], b[i]), atol=1e-14)


@pytest.mark.parametrize(
  "angles",
  [
    [1e-9, np.pi / 2 - 1e-9],
    [0.0, 1e-12, np.pi / 4, np.pi / 2],
    [1e-9, 1e-9, 0.3, 0.3],
  ],
)
def test_angles_are_accurate_at_both_ends(x64, angles):
  found = principal_angles(*planes(angles))
  np.testing.assert_allclose(found, angles, rtol=0, atol=5e-15)


def test_small_angles_survive_float32():
  angles = principal_angles(*planes([1e-4, np.pi / 2 - 1e-4]))
  np.testing.assert_allclose(
    angles, [1e-4, np.pi / 2 - 1e-4], rtol=0, atol=1e-6
  )


def test_overlaps_do_not_change_when_the_stream_is_rotated(x64):
  a, b, turn = normal(9, 3), normal(9, 4, seed=1), rotation(9)
  for measure in (principal_angles, projection_kernel, projection_share):
    np.testing.assert_allclose(
      measure(turn @ a, turn @ b), measure(a, b), rtol=0, atol=1e-14
    )


def test_overlaps_do_not_depend_on_order_or_spanning_columns(x64):
  a, b = normal(9, 3), normal(9, 4, seed=1)
  for measure in (principal_angles, projection_kernel, projection_share):
    np.testing.assert_allclose(
      measure(b @ normal(4, 4, seed=2), a), measure(a, b), rtol=0, atol=1e-13
    )


def test_a_length_one_axis_serves_the_whole_batch(x64):
  a, b = normal(3, 9, 2), normal(1, 9, 4, seed=1)
  for measure in (principal_angles, projection_kernel, projection_share):
    alone = [measure(a[i], b[0]) for i in range(3)]
    np.testing.assert_allclose(measure(a, b), alone, rtol=1e-13)
    np.testing.assert_allclose(measure(b, a), alone, rtol=1e-13)


def test_dependent_columns_have_no_angles():
  a = normal(2, 3, 6, 4)
  a[1, 2, :, 3] = a[1, 2, :, 0]
  b = normal(2, 3, 6, 4, seed=1)
  for arguments, name in (((a, b), "a"), ((b, a), "b")):
    with one_line.refusal(
      f"{name}: got rank 3 at index (1, 2); 1 such in all",
      "expected 4 independent columns",
      f"pass orthonormal_basis({name})",
    ):
      principal_angles(*arguments)


@pytest.mark.parametrize("deficient", ["a", "b"])
@pytest.mark.parametrize("compiled", [True, False])
def test_missing_angles_are_nan_and_the_others_right(x64, deficient, compiled):
  a, b = normal(2, 9, 3), normal(2, 9, 4, seed=1)
  short = a if deficient == "a" else b
  short[1, :, 1:] = short[1, :, :1] * [[2.0] * (short.shape[-1] - 1)]
  if compiled:
    angles = jax.jit(principal_angles)(a, b)
  else:
    angles = principal_angles(orthonormal_basis(a), orthonormal_basis(b))
  np.testing.assert_allclose(angles[0], scipy_angles(a[0], b[0]), atol=1e-14)
  full = b[1] if deficient == "a" else a[1]
  np.testing.assert_allclose(
    angles[1, :1], scipy_angles(short[1, :, :1], full), atol=1e-14
  )
  assert np.isnan(angles[1, 1:]).all()


def test_angles_of_a_space_with_rank_to_spare_in_the_other_are_kept(x64):
  """A 2-dimensional space in 4 columns against a space of 3 dimensions."""
  a, b = normal(9, 2) @ normal(2, 4, seed=2), normal(9, 3, seed=1)
  angles = principal_angles(orthonormal_basis(a), b)
  np.testing.assert_allclose(angles[:2], scipy_angles(a[:, :2], b), atol=1e-14)
  assert np.isnan(angles[2])


@pytest.mark.parametrize("measure", [projection_kernel, principal_angles])
@pytest.mark.parametrize(
  "a", [normal(7, 3), rotation(7)[:, :3]], ids=["general", "orthonormal"]
)
def test_gradients_are_finite_differences(x64, measure, a):
  b, weights = normal(7, 4, seed=1), np.arange(1.0, 4)

  @jax.jit
  def total(a, b):
    angles = measure(a, b)
    return (angles * weights[: angles.size]).sum()

  slopes = jax.jit(jax.grad(total, (0, 1)))(a, b)
  for position, slope in enumerate(slopes):
    for index in [(0, 0), (3, 1), (6, 2)]:
      ends = []
      for step in (1e-6, -1e-6):
        pair = [a.copy(), b.copy()]
        pair[position][index] += step
        ends.append(float(total(*pair)))
      np.testing.assert_allclose(
        slope[index], (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-9
      )


def test_gradients_are_finite_where_spaces_meet_or_are_orthogonal(x64):
  for a, b in (planes([0.0, np.pi / 2]), (np.eye(4)[:, :2], np.eye(4)[:, :2])):
    for measure in (principal_angles, projection_kernel):
      slopes = jax.jit(jax.jacrev(measure, (0, 1)))(a, b)
      assert all(np.isfinite(slope).all() for slope in slopes)


@pytest.mark.parametrize(
  "shapes",
  [((5, 2), (6, 2)), ((3, 5, 2), (5, 2)), ((3, 5, 2), (2, 5, 2))],
)
def test_subspaces_that_do_not_match_are_refused(shapes):
  a, b = map(jnp.ones, shapes)
  spaces = orthonormal_basis(a), orthonormal_basis(b)
  for measure in (principal_angles, projection_kernel, projection_share):
    with one_line.refusal(f"b: got shape {spaces[1].columns.shape}"):
      measure(*spaces)
  with one_line.refusal("b: got shape", "[..., m, d_model, d_b] to match a"):
    pairwise_projection_kernel(a[None], b)


def test_a_basis_is_taken_as_it_is():
  basis = Basis(jnp.eye(4)[:, :2], jnp.array(1))
  assert principal_angles(basis, jnp.eye(4)[:, :2]).shape == (2,)
  assert np.isnan(principal_angles(basis, jnp.eye(4)[:, :2])[1])
