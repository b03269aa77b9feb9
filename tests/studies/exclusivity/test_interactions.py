"""Are interactions what is left of joint effects after the single ones?"""

import jax
import numpy as np
import pytest
from helpers import GPT2, random_model, random_pairs
from saved_effects import saved, sets

from headjax.interventions.joint import patch_sets
from headjax.studies.exclusivity import interactions


def test_every_pair_has_its_interaction():
  data = sets({
    "L0H1": 2.0, "L1H0": 1.0, "L2H2": -0.5,
    "L0H1+L1H0": 2.5, "L0H1+L2H2": 1.5, "L1H0+L2H2": 1.0,
    "all": 3.0,
  })  # fmt: skip
  rows = interactions.pairs_of(data)
  assert [(r["a"], r["b"]) for r in rows] == [
    ("L0H1", "L1H0"), ("L0H1", "L2H2"), ("L1H0", "L2H2")
  ]  # fmt: skip
  found = [row["interaction"] for row in rows]
  np.testing.assert_allclose(found, [-0.5, 0.0, 0.5])
  sizes = [row["relative"] for row in rows]
  np.testing.assert_allclose(sizes, [-0.5 / 3, 0.0, 0.5 / 1.5])
  row = interactions.summarise(data)
  assert row["sum"] == pytest.approx(2.5)
  assert row["joint_share"] == pytest.approx(3.0 / 2.5)
  assert row["median_relative"] == pytest.approx(0.5 / 3)
  assert row["negative_share"] == pytest.approx(1 / 3)


def test_the_top_heads_are_patched_alone_in_pairs_and_together(monkeypatch):
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, [6, 7], [2, 3])
  e = np.zeros((3, 4))
  e[0, 1], e[1, 0], e[2, 2] = 3.0, 2.0, 1.0
  data = interactions.measure(model, pairs, saved(e).effect, top=3)
  assert data["set"].values.tolist() == [
    "L0H1", "L1H0", "L2H2", "L0H1+L1H0", "L0H1+L2H2", "L1H0+L2H2", "all"
  ]  # fmt: skip
  together = patch_sets(model, pairs, {"x": [(0, 1), (1, 0), (2, 2)]})
  np.testing.assert_allclose(
    data.effect.sel(set="all"), together.effect[:, 0], atol=1e-5
  )
