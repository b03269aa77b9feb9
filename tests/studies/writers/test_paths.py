"""Do roles follow from the direct shares, and from nothing where none exist?"""

import numpy as np
import pytest
from one_line import refusal

from headjax.studies.writers.paths import roles, shares

TRUE = np.array([0.3, -0.2, 0.02, 0.0])


def cell(pairs=100, noise=0.1, seed=0):
  """Effects of a writer, a canceller, a weak and an idle head."""
  rng = np.random.default_rng(seed)
  swing = rng.normal(2, 2, pairs)
  direct = swing[:, None] * TRUE + noise * rng.normal(size=(pairs, 4))
  total = swing[:, None] * (TRUE / 2) + noise * rng.normal(size=(pairs, 4))
  return direct, total, swing


def test_planted_roles_are_found():
  found = shares(*cell())
  assert found.roles.tolist() == ["writer", "canceller", "weak", "weak"]
  np.testing.assert_array_equal(found.of_role("writer"), [1, 0, 0, 0])
  np.testing.assert_allclose(found.direct.mean, TRUE, atol=0.03)
  np.testing.assert_allclose(found.total.mean, TRUE / 2, atol=0.03)
  assert found.doubt is None


def test_shares_are_means_of_ratios():
  direct, total, swing = cell()
  found = shares(direct, total, swing, draws=50)
  kept = swing >= 0.5
  assert (found.n_valid, found.n_pairs) == (kept.sum(), 100)
  assert found.mean_swing == pytest.approx(swing[kept].mean())
  for part, effect in (
    ("direct", direct),
    ("total", total),
    ("indirect", total - direct),
  ):
    mean = np.mean([effect[i, 1] / swing[i] for i in np.flatnonzero(kept)])
    assert getattr(found, part).mean[1] == pytest.approx(mean, rel=1e-12)


def test_a_large_share_that_is_not_sure_is_weak():
  rng = np.random.default_rng(1)
  swing = np.full(40, 1.0)
  unsure = 0.06 + rng.normal(size=(40, 1))
  found = shares(unsure, unsure, swing)
  assert found.direct.mean[0] >= 0.05 or found.direct.mean[0] <= -0.05
  assert found.roles.tolist() == ["weak"]


def test_the_margin_itself_counts():
  found = roles([0.05, -0.05, 0.0499, -0.0499, 0.5], [0.1, 0.1, 0, 0, 0.11])
  assert found.tolist() == ["writer", "canceller", "weak", "weak", "weak"]
  assert roles([0.05], [0.0], margin=0.06).tolist() == ["weak"]
  unsure = roles([0.5, -0.5], [0.05, 0.05], q=0.01)
  assert unsure.tolist() == ["weak", "weak"]
  assert roles([-0.5], [np.nan]).tolist() == ["weak"]


@pytest.mark.parametrize("scale", [0.1, 0.0])
def test_a_model_without_a_swing_has_no_roles(scale):
  direct, total, swing = cell()
  found = shares(direct, total, scale * np.minimum(swing, 4))
  assert set(found.roles) == {"undefined"}
  assert np.isnan(found.mean_swing)
  assert found.doubt.startswith("0 of 100 pairs have the swing")


def test_few_valid_pairs_have_shares_but_no_roles():
  direct, total, swing = cell(pairs=22)
  found = shares(direct, total, swing)
  assert 2 <= found.n_valid < 20
  assert np.isfinite(found.direct.mean).all()
  assert set(found.roles) == {"undefined"}
  assert f"{found.n_valid} of 22 pairs" in found.doubt
  fewer = shares(direct, total, swing, least_pairs=5)
  assert "writer" in fewer.roles


def test_wrong_tables_are_refused():
  direct, total, swing = cell()
  with refusal("total: got shape (100, 3) beside direct effects (100, 4)"):
    shares(direct, total[:, 1:], swing)
  with refusal("parts: got shape (100, 4) beside (99,) swings"):
    shares(direct, total, swing[1:])
