"""Are attributions compared with their shuffled control as the paper did?"""

import math

import numpy as np
import pytest
from one_line import refusal
from scipy import stats

from headjax.statistics.shuffled_control import (
  candidates,
  shuffled_control,
  standard_error,
)


def test_one_head_by_hand():
  found = shuffled_control(1.0, 0.3, [0.1, 0.3, 0.5, 0.3])
  sd = math.sqrt((0.04 + 0 + 0.04 + 0) / 3)
  denom = math.sqrt(0.09 + sd**2 / 4)
  assert found.shuffled_mean == pytest.approx(0.3, rel=1e-12)
  assert found.shuffled_sd == pytest.approx(sd, rel=1e-12)
  assert found.denom == pytest.approx(denom, rel=1e-12)
  assert found.z == pytest.approx(0.7 / denom, rel=1e-12)
  assert found.p == pytest.approx(
    2 * (1 - stats.norm.cdf(0.7 / denom)), rel=1e-9
  )


def test_heads_do_not_see_each_other():
  rng = np.random.default_rng(0)
  mean, error = rng.normal(size=(2, 3)), rng.random((2, 3))
  shuffled = rng.normal(size=(5, 2, 3))
  whole = shuffled_control(mean, error, shuffled)
  for at in np.ndindex(2, 3):
    alone = shuffled_control(mean[at], error[at], shuffled[:, *at])
    assert whole.z[at] == pytest.approx(float(alone.z), rel=1e-12)


def test_z_is_normal_where_labels_do_not_matter():
  rng = np.random.default_rng(1)
  heads, prompts, shuffles = 4000, 64, 10
  values = rng.normal(size=(prompts, heads))
  shuffled = rng.normal(size=(shuffles, heads)) / math.sqrt(prompts)
  found = shuffled_control(
    values.mean(axis=0), standard_error(values), shuffled
  )
  # The standard error is estimated on 64 prompts: t and not quite normal.
  assert stats.kstest(found.p, "uniform").pvalue > 1e-3
  assert np.mean(found.z**2) == pytest.approx(64 / 62, abs=0.08)


def test_a_head_that_writes_nothing_is_no_discovery():
  found = shuffled_control([0.0, 1.0], [0.0, 0.0], np.zeros((3, 2)))
  np.testing.assert_array_equal(found.p, [1.0, 0.0])
  assert found.z[0] == 0 and np.isposinf(found.z[1])


def test_the_largest_heads_join_the_significant_ones():
  mean = np.array([0.1, -0.9, 0.5, 0.05, -0.2, 0.3])
  significant = np.array([0, 0, 0, 1, 0, 0], bool)
  found = candidates(mean, significant, minimum=1, factor=3)
  assert set(np.flatnonzero(found)) == {1, 2, 5, 3}
  found = candidates(mean, significant, minimum=2, factor=0)
  assert set(np.flatnonzero(found)) == {1, 2, 3}
  assert candidates(mean.reshape(2, 3), significant.reshape(2, 3)).all()
  assert not candidates(mean, ~np.ones(6, bool), minimum=0).any()


def test_wrong_tables_are_refused():
  with refusal("shuffled: got 1 shuffles; expected 2 or more"):
    shuffled_control(1.0, 1.0, [0.0])
  with refusal("shuffled: got shape (3, 2) beside means of shape (3,)"):
    shuffled_control(np.ones(3), np.ones(3), np.ones((3, 2)))
  with refusal("values: got 1 example"):
    standard_error([[1.0, 2.0]])
