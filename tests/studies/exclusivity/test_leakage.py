"""Do the printed numbers of leakage follow from the saved dataset?"""

import dataclasses

import numpy as np
import pytest
from helpers import FAMILIES, GPT2, SCREENING, random_model, random_pairs
from scipy.stats import spearmanr

from headjax import results
from headjax.geometry.designs import ReadDesign, WriteDesign
from headjax.studies.exclusivity import leakage

BLOCK = dataclasses.replace(
  GPT2, d_head=4, d_key=None, read=ReadDesign("block"),
  write=WriteDesign("axis", 0.3),
)  # fmt: skip


@pytest.fixture(scope="module")
def tasks():
  """Of two tasks of three prompts, and of the second alone."""
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(model.config, [8, 5, 7], [3, 1, 0])
  other = random_pairs(model.config, [8, 7, 6], [0, 3, 2], seed=1)
  both = leakage.measure_all(model, [pairs, other])
  return *both, leakage.measure(model, other)


@pytest.fixture(scope="module")
def found(tasks):
  return tasks[0]


def test_tasks_measured_together_are_as_alone(tasks):
  first, second, alone = tasks
  for name in alone:
    np.testing.assert_allclose(second[name], alone[name], rtol=2e-5)
  for name in ("pairs_digest", "write_error", "chunk"):
    assert second.attrs[name] == alone.attrs[name]
  assert first.attrs["pairs_digest"] != second.attrs["pairs_digest"]
  assert not np.allclose(first.leakage, second.leakage, equal_nan=True)


def effects_with(heads, shape=(3, 4)):
  """Effects whose largest means are at these heads, in falling order."""
  table = np.zeros(shape)
  for rank, head in enumerate(heads):
    table[head] = 10 - rank
  return np.stack([table, table])


def test_a_dataset_is_labelled_and_survives_the_disk(found, tmp_path):
  assert found.leakage.dims == leakage.DIMS
  assert list(found.input.values) == ["Q", "K", "V"]
  assert found.attrs["split"] == ""
  assert 0 <= found.attrs["write_error"] < 2e-5
  assert (found.energy > 0).all()
  results.save(found, tmp_path / "leakage.nc")
  assert results.load(tmp_path / "leakage.nc").identical(found)


def test_typical_pairs_are_the_medians_over_all_later_readers(found):
  rows = leakage.summarise(found)
  assert [row["input"] for row in rows] == ["Q", "K", "V"]
  values = {"leakage": [], "isotropic": []}
  for source, i, layer, j in np.ndindex(3, 4, 3, 4):
    if layer > source:
      for name, column in values.items():
        column.append(float(found[name].values[1, source, i, layer, j]))
  measured, even = map(np.array, values.values())
  assert rows[1]["pairs"] == 48
  assert rows[1]["median_leakage"] == pytest.approx(np.median(measured))
  assert rows[1]["median_ratio"] == pytest.approx(np.median(measured / even))
  rank = spearmanr(measured, even).statistic
  assert rows[1]["spearman"] == pytest.approx(rank)


def test_important_pairs_are_ranked_among_both_populations(found):
  chosen = [(1, 2), (0, 3), (2, 1)]
  rows = leakage.important_pairs(found, effects_with(chosen))
  assert len(rows) == 3 * 3
  row = next(
    r
    for r in rows
    if r["input"] == "V" and (r["source_layer"], r["layer"]) == (0, 2)
  )
  assert (row["source_head"], row["head"]) == (3, 1)
  table = found.leakage.values[2]
  value = table[0, 3, 2, 1]
  assert row["leakage"] == pytest.approx(float(value))
  even = found.isotropic.values[2, 0, 3, 2, 1]
  assert row["ratio"] == pytest.approx(float(value / even))
  later, layers = table[0, 3, 1:].ravel(), table[0, :, 2].ravel()
  assert row["percentile"] == rank_of(value, later, 8)
  assert row["layer_percentile"] == rank_of(value, layers, 16)


def rank_of(value, population, n):
  assert population.size == n
  return pytest.approx(100 * (np.sum(population < value) + 0.5) / n)


def test_pairs_of_several_models_are_summed_up_together():
  rows = [
    {"input": letter, "ratio": r, "percentile": p, "layer_percentile": q}
    for letter, r, p, q in [
      ("Q", 1.0, 95.0, 20.0),
      ("Q", 3.0, 91.0, 95.0),
      ("K", 0.5, 40.0, 50.0),
      ("Q", 2.0, 10.0, 99.0),
      ("Q", float("nan"), 90.0, 90.0),
    ]
  ]
  query, key = leakage.summarise_pairs(rows)
  assert query == {
    "input": "Q",
    "pairs": 4,
    "median_ratio": 2.0,
    "median_percentile": 90.5,
    "median_layer_percentile": 92.5,
    "share_percentile_above_90": 0.5,
    "share_layer_percentile_above_90": 0.5,
  }
  assert (key["pairs"], key["median_ratio"]) == (1, 0.5)
  assert leakage.summarise_pairs([]) == []


def test_what_no_design_allows_has_no_ratio():
  model, _ = random_model(BLOCK, dtype="float32")
  found = leakage.measure(model, random_pairs(BLOCK, [8, 5], [3, 1]))
  row = leakage.summarise(found)[0]
  assert row["median_leakage"] == 0  # three of four pairs are of two indices
  even = found.isotropic.values[0]
  own = found.leakage.values[0][even > 0] / even[even > 0]
  assert own.size == 3 * 4
  assert row["median_ratio"] == pytest.approx(np.median(own))
  assert row["spearman"] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("family", ["screening", "tracr"])
def test_other_families_are_measured_with_all_their_inputs(family):
  config = (FAMILIES | {"screening": SCREENING})[family]
  model, _ = random_model(config, dtype="float32")
  found = leakage.measure(model, random_pairs(config, [6, 6], [3, 1]))
  letters = "QKVG" if family == "screening" else "QKV"
  assert "".join(found.input.values) == letters
  assert len(leakage.summarise(found)) == len(letters)
