"""Is compensation total minus direct, head by head and together?"""

import numpy as np
import pytest
from one_line import refusal
from saved_effects import saved

from headjax.studies.exclusivity import self_repair

TOTAL = np.array([[3.0, -1.0], [0.5, 2.0]])
DIRECT = np.array([[1.0, 0.5], [2.0, -0.5]])


def noisy(mean, seed=0):
  noise = np.random.default_rng(seed).normal(size=(40, 2, 2))
  return mean + noise - noise.mean(0)


def test_every_head_has_its_compensation_and_interval():
  total, direct = noisy(TOTAL), noisy(DIRECT, seed=1)
  rows = self_repair.heads(saved(direct), saved(total), draws=400)
  assert [(r["layer"], r["head"]) for r in rows] == [
    (0, 0), (0, 1), (1, 0), (1, 1)
  ]  # fmt: skip
  gap = [row["compensation"] for row in rows]
  np.testing.assert_allclose(gap, (TOTAL - DIRECT).ravel(), atol=1e-12)
  assert all(r["low"] < r["compensation"] < r["high"] for r in rows)
  # The interval is of the difference within examples.
  width = [row["high"] - row["low"] for row in rows]
  spread = (total - direct).std(0).ravel() / np.sqrt(40)
  np.testing.assert_allclose(width, 2 * 1.96 * spread, rtol=0.25)


def test_the_top_heads_are_summed_and_repaired_ones_counted():
  row = self_repair.summarise(saved(DIRECT), saved(TOTAL), top=2)
  assert (row["total"], row["direct"]) == (5.0, 0.5)
  assert row["direct_share"] == pytest.approx(0.1)
  # Of three heads with a positive direct effect, two have a smaller total.
  assert row["repaired"] == pytest.approx(2 / 3)


def test_effects_of_different_things_are_refused():
  with refusal("pairs_digest", "p and q"):
    self_repair.heads(saved(DIRECT), saved(TOTAL, pairs_digest="q"))
  with refusal("model_digest", "m and n"):
    self_repair.summarise(saved(DIRECT), saved(TOTAL, model_digest="n"))
