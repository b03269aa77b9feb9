"""Are the factored singular values those of the dense matrix?"""

import numpy as np

from headjax.geometry.circuits import Factored
from headjax.geometry.spectra import spectrum


def test_the_decomposition_is_that_of_the_dense_matrix():
  rng = np.random.default_rng(0)
  left, right = rng.normal(size=(2, 3, 9, 4)), rng.normal(size=(2, 3, 4, 8))
  found, dense = spectrum(Factored(left, right)), left @ right
  wanted = np.linalg.svd(dense, compute_uv=False)[..., :4]
  np.testing.assert_allclose(found.values, wanted, atol=1e-12)
  again = (found.reads * found.values[..., None, :]) @ found.writes
  np.testing.assert_allclose(again, dense, atol=1e-12)
  share = wanted[..., 0] ** 2 / (dense**2).sum((-1, -2))
  np.testing.assert_allclose(found.top_share, share)


def test_a_planted_copy_suppressor_is_of_rank_one():
  token = np.array([0.6, 0.8, 0.0])
  dense_left = np.outer(token, [1.0, 0.0])
  dense_right = np.outer([1.0, 0.0], -token)
  found = spectrum(Factored(dense_left, dense_right))
  assert found.top_share == 1
  assert found.reads[:, 0] @ token * (found.writes[0] @ token) < 0
  nothing = spectrum(Factored(np.zeros((3, 2)), np.zeros((2, 3))))
  assert nothing.top_share == 0
