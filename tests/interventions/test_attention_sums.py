"""Are the means those of plain loops, whatever the chunks?"""

import numpy as np
import pytest
from one_line import refusal

from headjax.data.induction import natural_induction, random_induction
from headjax.data.probes import baseline_keys
from headjax.interventions.attention_sums import AttentionSums


@pytest.fixture(scope="module")
def probe():
  random = np.random.default_rng(1)
  found = natural_induction(random.integers(100, 160, (9, 90)), gap=12)
  # One row has no earlier token.
  keys = {k: v.copy() for k, v in found.targets.items()}
  keys["duplicate"][2], keys["induction"][2] = -1, -1
  return type(found)(**{**found.__dict__, "targets": keys})


def pattern_of(probe, shape=(2, 3)):
  random = np.random.default_rng(2)
  return random.random((len(probe), *shape, probe.tokens.shape[1]))


def test_means_are_those_of_loops(probe):
  pattern = pattern_of(probe)
  sums = AttentionSums(probe, draws=4)
  for place in (slice(0, 4), slice(4, 5), slice(5, 9)):
    sums.add(place, pattern[place])
  marked, baseline, null = sums.means()
  for kind, keys, found in zip(
    sums.kinds, probe.targets.values(), marked, strict=True
  ):
    each = [
      np.mean([p[..., k] for k in row if k >= 0], axis=0)
      for p, row in zip(pattern, keys, strict=True)
      if max(row) >= 0
    ]
    np.testing.assert_allclose(found, np.mean(each, axis=0), err_msg=kind)
    assert sums.examples[sums.kinds.index(kind)] == len(each)
  each = [
    np.mean([p[..., k] for k in row if k >= 0], axis=0)
    for p, row in zip(pattern, baseline_keys(probe), strict=True)
  ]
  np.testing.assert_allclose(baseline, np.mean(each, axis=0))
  assert null.shape == (4, 2, 3) and np.ptp(null, axis=0).min() > 0


def test_random_keys_stand_for_no_kind(probe):
  """Attention that is 1 on all marked keys and behind the query is not met."""
  pattern = np.zeros((len(probe), 1, 1, probe.tokens.shape[1]))
  line = np.arange(pattern.shape[-1])
  pattern[:, 0, 0] = line > probe.query[:, None]
  for keys in probe.targets.values():
    for i, row in enumerate(keys):
      pattern[i, ..., row[row >= 0]] = 1
  sums = AttentionSums(probe, draws=300)
  sums.add(slice(0, len(probe)), pattern)
  assert sums.means()[2].max() == 0


def test_a_kind_that_no_row_has_is_nan(probe):
  keys = probe.targets | {"induction": np.full((9, 1), -1)}
  sums = AttentionSums(type(probe)(**{**probe.__dict__, "targets": keys}))
  sums.add(slice(0, 9), pattern_of(probe))
  marked = sums.means()[0]
  assert np.isnan(marked[0]).all() and not np.isnan(marked[1:]).any()


def test_rows_that_were_not_added_are_missed(probe):
  sums = AttentionSums(probe)
  sums.add(slice(0, 4), pattern_of(probe)[:4])
  with refusal("rows: got 4; expected all 9"):
    sums.means()


def test_every_random_key_is_as_likely():
  probe = random_induction(50257, 1024, 1)
  sums = AttentionSums(probe, draws=20_000)
  counts = np.bincount(sums._null[0], minlength=256)
  assert (counts > 0).sum() == 247
  assert counts[counts > 0].min() > 40 and counts.max() < 130
