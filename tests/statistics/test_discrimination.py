import numpy as np
import pytest

from headjax.statistics.discrimination import auc


@pytest.mark.parametrize("decimals", [0, 5])  # with and without ties
def test_the_area_is_the_share_of_ordered_pairs(decimals):
  rng = np.random.default_rng(0)
  labels = rng.random(40) < 0.4
  scores = (rng.normal(size=40) + labels).round(decimals)
  up, down = scores[labels][:, None], scores[~labels][None]
  expected = (up > down).mean() + (up == down).mean() / 2
  assert np.isclose(auc(scores, labels), expected)
  assert np.isclose(auc(-scores, labels), 1 - expected)


def test_one_group_alone_is_refused():
  with pytest.raises(ValueError, match="labels: got 3 positive and 0"):
    auc(np.arange(3), np.ones(3))
