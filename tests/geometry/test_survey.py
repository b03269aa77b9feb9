import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from one_line import refusal

from headjax.geometry import orthonormal_basis
from headjax.geometry.survey import (
  conservation_excess,
  kernel_of_all_pairs,
  random_angles,
  sampled_angles,
  self_alignment,
  survey,
)

AXES = np.eye(6).reshape(6, 3, 2).swapaxes(0, 1)  # three planes of six axes


def spaces(seed, shape=(2, 3, 6, 2)):
  rng = np.random.default_rng(seed)
  return orthonormal_basis(jnp.asarray(rng.normal(size=shape)))


def test_kernels_of_all_pairs_are_sums_of_squared_cosines(x64):
  a, b = spaces(0, (2, 3, 6, 2)), spaces(1, (4, 5, 6, 3))
  pk = kernel_of_all_pairs(a, b)
  assert pk.shape == (2, 3, 4, 5)
  for l, h, m, k in np.ndindex(pk.shape):  # noqa: E741
    angles = scipy.linalg.subspace_angles(a.columns[l, h], b.columns[m, k])
    np.testing.assert_allclose(
      pk[l, h, m, k], (np.cos(angles) ** 2).sum(), atol=1e-12
    )


def test_writes_that_decompose_the_stream_leave_no_excess(x64):
  reads = spaces(0)
  writes = orthonormal_basis(jnp.asarray(np.stack([AXES, AXES[:, ::-1]])))
  pk = kernel_of_all_pairs(reads, writes)
  excess = conservation_excess(pk, reads.rank)
  assert excess.shape == (2, 3, 2)
  np.testing.assert_allclose(excess, 0, atol=1e-12)
  # The head that is left out is missed by as much as it gave.
  np.testing.assert_allclose(
    conservation_excess(pk[..., 1:], reads.rank), -pk[..., 0], atol=1e-12
  )


def test_self_alignment_is_the_own_share_and_whether_it_is_the_largest():
  pk = np.zeros((2, 2, 2, 2))
  pk[0, :, 0] = [[1.0, 0.5], [1.5, 0.5]]  # reader 1 reads writer 0 most
  pk[1, :, 1] = [[0.2, 0.1], [0.0, 2.0]]
  pk[0, 0, 1, 0] = 9  # another layer's writes do not matter
  ranks = np.array([[2, 2], [1, 2]]), np.array([[2, 1], [2, 2]])
  found = self_alignment(pk, *ranks)
  np.testing.assert_allclose(found.own, [[0.5, 0.5], [0.2, 1.0]])
  np.testing.assert_array_equal(found.best, [[True, False], [True, True]])


def test_sampled_angles_are_of_pairs_in_different_layers(x64):
  # Within a layer all spaces are one; between the layers they are orthogonal.
  planes = np.stack([AXES[[0, 0, 0]], AXES[[1, 1, 1]]])
  space = orthonormal_basis(jnp.asarray(planes))
  angles = sampled_angles(space, space, 50, seed=0)
  assert angles.shape == (50, 2)
  np.testing.assert_allclose(angles, np.pi / 2)


def test_every_other_layer_and_every_head_is_sampled(x64):
  marks = np.eye(12).reshape(12, 3, 2, 2).transpose(1, 2, 0, 3)
  space = orthonormal_basis(jnp.asarray(marks[:, :, :, :1]))
  # The angle of two marks says nothing of which they were, so tilt each one.
  tilted = spaces(3, (3, 2, 12, 1))
  pk = kernel_of_all_pairs(tilted, space)
  angles = sampled_angles(tilted, space, 2000, seed=0)
  seen = set(np.round(np.cos(angles[:, 0]) ** 2, 9))
  across = pk[
    ~np.eye(3, dtype=bool)[:, None, :, None].repeat(2, 1).repeat(2, 3)
  ]
  assert seen == set(np.round(across, 9))
  assert len(seen) == 24


def test_random_angles_have_the_kernel_of_random_spaces():
  angles = random_angles(48, 8, 60, seed=0)
  assert angles.shape == (60, 8)
  kernels = (np.cos(angles) ** 2).sum(1)
  assert abs(kernels.mean() - 8 * 8 / 48) < 5 * kernels.std() / 60**0.5


def test_a_survey_holds_the_parts_by_kind_and_input(x64):
  write, read = spaces(0), {"Q": spaces(1), "V": spaces(2)}
  folded = {"Q": spaces(3), "V": spaces(4, (2, 3, 6, 1))}
  found = survey(write, {"weights": read, "norm": folded})
  np.testing.assert_array_equal(
    found.read_pk["norm"]["V"], kernel_of_all_pairs(folded["V"], write)
  )
  np.testing.assert_array_equal(
    found.write_pk, kernel_of_all_pairs(write, write)
  )
  expected = self_alignment(
    kernel_of_all_pairs(read["V"], write), read["V"].rank, write.rank
  )
  np.testing.assert_array_equal(found.alignment.own, expected.own)
  np.testing.assert_array_equal(found.read_rank["norm"]["V"], 1)
  assert found.widths == {"Q": 2, "V": 2, "write": 2}
  np.testing.assert_array_equal(
    found.excess("norm", "V"),
    conservation_excess(found.read_pk["norm"]["V"], np.ones((2, 3))),
  )
  assert list(found.angles)[-1] == "random spaces"


def test_a_single_layer_is_refused():
  with refusal("layers: got 1", "at least 2"):
    sampled_angles(spaces(0, (1, 3, 6, 2)), spaces(0, (1, 3, 6, 2)), 5, seed=0)


@pytest.mark.parametrize("seed", [0, 1])
def test_samples_depend_on_the_seed_alone(seed):
  args = spaces(0), spaces(1), 20
  first, again = (sampled_angles(*args, seed=seed) for _ in range(2))
  np.testing.assert_array_equal(first, again)
  assert (sampled_angles(*args, seed=seed + 1) != first).any()
