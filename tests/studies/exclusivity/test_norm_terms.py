"""Is what leakage leaves out summed up by pair and over all pairs?"""

import numpy as np
import pytest
from helpers import GPT2, random_model, random_pairs

from headjax.studies.exclusivity import norm_terms


def test_what_leakage_leaves_out_is_told_by_pair_and_pooled():
  model, _ = random_model(GPT2, dtype="float32")
  found = norm_terms.measure(model, random_pairs(GPT2, [6, 5], [3, 1]))
  row = norm_terms.summarise(found)[2]
  left_out, response = (x.values[2] for x in (found.left_out, found.response))
  later = np.isfinite(left_out)
  assert later.sum() == 48
  share = np.sqrt(left_out[later] / response[later])
  assert row["median_share"] == pytest.approx(np.median(share), rel=1e-6)
  pooled = np.sqrt(left_out[later].sum() / response[later].sum())
  assert row["pooled_share"] == pytest.approx(pooled, rel=1e-6)
  assert 0 < pooled < 1
