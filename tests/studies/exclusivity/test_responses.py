"""Are the printed numbers of responses those of the sums?"""

import jax
import numpy as np
import pytest
import xarray as xr
from held_models import held_model
from helpers import GPT2, random_pairs
from scipy.stats import spearmanr

from headjax import results
from headjax.studies.exclusivity import responses

SOURCE = ("source_layer", "source_head")
SHAPE = (3, 2, 3, 2)


def made_up(seed=0):
  """A dataset as of `measure`, of 3 layers of 2 heads."""
  rng = np.random.default_rng(seed)
  line = np.arange(3)
  later = (line > line[:, None])[:, None, :, None, None]

  def table(name, labels):
    values = rng.uniform(0.1, 1, (*SHAPE, len(labels)))
    return (*SOURCE, "layer", "head", name), np.where(later, values, np.nan)

  letters, ways = list("QKV"), ["query", "keys", "direct", "total"]
  names = ("dot", "direct_square", "total_square")
  arrays = {name: table("input", letters) for name in names}
  arrays["attention_change"] = table("path", ways)
  sizes = zip((*SOURCE, "layer", "head"), SHAPE, strict=True)
  coords = {name: np.arange(n) for name, n in sizes}
  return xr.Dataset(arrays, coords | {"input": letters, "path": ways})


def chosen(*heads):
  effects = np.zeros((1, 3, 2))
  for i, head in enumerate(heads):
    effects[(0, *head)] = 9 - i
  return effects


TOPS = chosen((2, 1), (0, 1), (1, 0))


def test_ratios_by_hand():
  data = made_up()
  found = responses.ratios(data)
  at = (0, 1, 2, 0, 1)
  dot, d, t = (
    data[name].values[at] for name in ("dot", "direct_square", "total_square")
  )
  assert found.cosine.values[at] == pytest.approx(dot / (d * t) ** 0.5)
  assert found.norm_ratio.values[at] == pytest.approx((d / t) ** 0.5)
  assert found.projection.values[at] == pytest.approx(dot / t)
  np.testing.assert_allclose(
    found.projection, found.cosine * found.norm_ratio, rtol=1e-12
  )


def test_no_response_has_no_ratio():
  data = made_up()
  for name in ("dot", "direct_square", "total_square"):
    data[name].values[0, 0, 1, 0, 0] = 0
  found = responses.ratios(data)
  assert all(np.isnan(found[name].values[0, 0, 1, 0, 0]) for name in found)
  assert responses.summarise(data)[0]["pairs"] == 11


def test_medians_of_all_pairs():
  data = made_up()
  rows = responses.summarise(data)
  assert [row["input"] for row in rows] == ["Q", "K", "V"]
  assert [row["pairs"] for row in rows] == [12] * 3
  projection = responses.ratios(data).projection.values[..., 2]
  assert rows[2]["median_projection"] == np.nanmedian(projection)


def test_important_pairs_go_from_earlier_to_later_layers():
  data = made_up()
  rows = responses.important_pairs(data, TOPS)
  pairs = [(0, 1, 1, 0), (0, 1, 2, 1), (1, 0, 2, 1)]
  found = [tuple(list(row.values())[:5]) for row in rows]
  assert found == [(*pair, x) for pair in pairs for x in "QKV"]
  cosine = responses.ratios(data).cosine.values
  assert rows[5]["cosine"] == cosine[(*pairs[1], 2)]


def test_attention_changes_and_their_place_among_later_heads():
  data = made_up()
  rows = responses.attention_changes(data, TOPS)
  change = data.attention_change.values
  own = change[0, 1, 2, 1, 0]
  assert rows[1]["query"] == own
  smaller = (change[0, 1, 1:, :, 0] < own).sum()
  assert rows[1]["query_percentile"] == pytest.approx(100 * (smaller + 0.5) / 4)
  found = responses.summarise_changes(rows)
  assert found["pairs"] == 3
  more = [row["query"] > row["keys"] for row in rows]
  assert found["query_share"] == pytest.approx(sum(more) / 3)
  assert found["median_total"] == np.median([row["total"] for row in rows])


def test_changes_of_all_later_heads():
  data = made_up()
  rows = responses.changes_of_all(data, TOPS)
  assert [row["heads"] for row in rows] == [0, 4, 2]
  assert np.isnan(rows[0]["median_query"])
  want = np.median(data.attention_change.values[1, 0, 2, :, 1])
  assert rows[2]["median_keys"] == want


def test_leakage_is_ranked_against_the_change_by_the_query():
  data = made_up()
  leakage = made_up(1).dot.transpose("input", ...)
  rows = responses.follows_leakage(data, leakage, TOPS)
  a = data.attention_change.values[0, 1, 1:, :, 0].ravel()
  b = leakage.values[0, 0, 1, 1:].ravel()
  assert rows[1]["spearman"] == pytest.approx(spearmanr(a, b).statistic)
  assert np.isnan(rows[0]["spearman"])


def test_a_measurement_has_all_of_it(monkeypatch, tmp_path):
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  model, _ = held_model(GPT2, dtype="float32")
  data = responses.measure(model, random_pairs(GPT2, [8, 8], [3, 2]))
  results.save(data, tmp_path / "responses.nc")
  again = results.load(tmp_path / "responses.nc")
  xr.testing.assert_identical(again, data)
  effects = data.effect.rename(source_layer="layer", source_head="head")
  assert (responses.ratios(again).cosine.max() <= 1 + 1e-6).item()
  assert responses.summarise(again) == responses.summarise(data)
  for function in (responses.attention_changes, responses.important_pairs):
    assert function(again, effects) == function(data, effects) != []
  assert 0 < data.attention_change.max() <= 1
