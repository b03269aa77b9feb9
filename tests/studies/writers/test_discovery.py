"""Do both rules find planted heads, and nothing in noise?"""

import numpy as np
import pytest
from one_line import refusal
from scipy import stats

from headjax.studies.writers.discovery import RULES, choose, discover

LAYERS, HEADS = 4, 8


def cell(planted=None, prompts=96, shuffles=10, seed=0):
  """Attributions with planted means, and those with shuffled labels."""
  rng = np.random.default_rng(seed)
  values = rng.normal(size=(prompts, LAYERS, HEADS))
  for at, mean in (planted or {}).items():
    values[:, *at] += mean
  return values, rng.normal(size=(shuffles, prompts, LAYERS, HEADS))


@pytest.mark.parametrize("rule", RULES)
def test_planted_heads_are_found_with_their_signs(rule):
  found = discover(*cell({(1, 2): 0.8, (3, 5): -0.8}), rule=rule)
  assert found.writers[1, 2] and found.cancellers[3, 5]
  assert found.n_significant <= 4
  assert found.rule == rule
  assert found.n_candidates == 20


def test_z_is_that_of_its_formula():
  values, shuffled = cell({(0, 0): 0.4})
  found = discover(values, shuffled)
  x, s = values[:, 0, 0], shuffled[:, :, 0, 0].mean(axis=1)
  denom = np.sqrt(x.var(ddof=1) / 96 + s.var(ddof=1) / 10)
  z = (x.mean() - s.mean()) / denom
  assert found.control.z[0, 0] == pytest.approx(z, rel=1e-12)
  assert found.p[0, 0] == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-12)
  expected = stats.false_discovery_control(found.p.ravel())
  np.testing.assert_allclose(found.adjusted.ravel(), expected, rtol=1e-12)


def test_the_sign_flip_rule_pairs_a_prompt_with_its_shuffles():
  values, shuffled = cell({(2, 2): 0.2})
  prompts = 10 * np.random.default_rng(1).normal(size=(96, 1, 1))
  alone = discover(values, shuffled, rule="sign-flip")
  shifted = discover(values + prompts, shuffled + prompts, rule="sign-flip")
  np.testing.assert_allclose(shifted.p, alone.p, atol=1e-3)
  assert discover(values + prompts, shuffled + prompts).p[2, 2] > 0.3


def test_groups_reach_the_signs():
  values, shuffled = cell()
  values += 0.3 * np.repeat(
    np.random.default_rng(5).normal(size=(12, LAYERS, HEADS)), 8, axis=0
  )
  group = np.repeat(np.arange(12), 8)
  alone = discover(values, shuffled, rule="sign-flip").p
  together = discover(values, shuffled, rule="sign-flip", group=group).p
  assert np.abs(alone - together).max() > 0.02


def test_the_control_matters():
  values, _ = cell({(1, 1): 1.0})
  same = np.stack([values] * 3)
  found = discover(values, same)
  assert found.n_significant == 0 and found.n_candidates == 20
  assert not found.writers.any() and not found.cancellers.any()


def test_candidates_grow_with_the_discoveries():
  planted = {(0, h): 2.0 for h in range(HEADS)}
  found = discover(*cell(planted))
  assert found.n_significant >= 8
  wanted = max(20, 3 * found.n_significant)
  assert found.n_candidates >= min(wanted, LAYERS * HEADS)
  assert (found.candidates | ~found.significant).all()
  assert choose(found.control, q=0.0).n_candidates == 20


def test_size_and_not_surety_makes_a_candidate():
  values, shuffled = cell()
  values[:, 3, 7] *= 30
  values[:, 3, 7] += 4 - values[:, 3, 7].mean()
  found = choose(discover(values, shuffled).control, q=0.0)
  assert abs(found.control.z[3, 7]) < 2 and found.n_significant == 0
  np.testing.assert_array_equal(
    found.candidates.ravel()[np.argsort(-np.abs(values.mean(0)).ravel())],
    np.arange(LAYERS * HEADS) < 20,
  )


def test_wrong_tables_are_refused():
  values, shuffled = cell()
  with refusal("shuffled: got shape (10, 95, 4, 8) beside attributions"):
    discover(values, shuffled[:, 1:])
  with refusal("rule: got 'maximum'"):
    discover(values, shuffled, rule="maximum")
  with refusal("shuffled: got 1 shuffles"):
    discover(values, shuffled[:1])
