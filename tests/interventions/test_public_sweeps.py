"""Do both sweeps of every public family equal a loop of oracle forwards?"""

import itertools

import jax
import numpy as np
import pytest
import slow_sweep
from helpers import PUBLIC, random_model, random_pairs

from headjax.interventions.heads import patch_heads

SITES = ("z", "q", "k", "v")
FORMS = ("suffix", "general")
# The third prompt is edited at its last position, the fourth not at all.
LENGTHS, FIRST = [6, 8, 4, 5], [3, 4, 3, -1]
# One site and form a family here, all of them among the slow tests.
QUICK = [
  (name, site, form)
  for name, (form, site) in zip(
    PUBLIC, itertools.product(FORMS, SITES), strict=True
  )
]
ALL = list(itertools.product(PUBLIC, SITES, FORMS))


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def compare(name, site, form, ablation="reference"):
  config = PUBLIC[name]
  model, w = random_model(config)
  pairs = random_pairs(config, LENGTHS, FIRST)
  data = patch_heads(model, pairs, form, site=site, ablation=ablation)
  effect, base = slow_sweep.sweep(
    config, w, pairs, site=site, ablation=ablation
  )
  heads = np.abs(effect).max(0)
  assert (heads > 1e-5).mean() > 0.6, "the test would prove nothing"
  np.testing.assert_allclose(data.effect, effect, rtol=0, atol=1e-10)
  np.testing.assert_allclose(data.base, base, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name, site, form", QUICK)
def test_effects_are_those_of_a_loop_of_forwards(x64, name, site, form):
  compare(name, site, form)


@pytest.mark.slow
@pytest.mark.parametrize("name, site, form", sorted(set(ALL) - set(QUICK)))
def test_effects_of_all_sites_in_both_forms(x64, name, site, form):
  compare(name, site, form)


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLIC)
def test_ablating_by_the_mean_from_the_first_position_on(x64, name):
  """The window is the whole sequence; no prefix is read from the cache."""
  compare(name, "z", "suffix", ablation="mean")
