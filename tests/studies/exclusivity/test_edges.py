"""Are edges compared with the kernels of their own ends?"""

import dataclasses

import jax
import numpy as np
import pytest
import xarray as xr
from helpers import GPT2, random_model, random_pairs
from scipy.stats import spearmanr

from headjax import results
from headjax.geometry.designs import ReadDesign, WriteDesign
from headjax.interventions.edge_lists import all_edges
from headjax.studies.exclusivity import edges

AXES = dataclasses.replace(
  GPT2, d_head=4, d_key=4,
  write=WriteDesign("axis"), read=ReadDesign("block"),
)  # fmt: skip


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def test_kernels_are_those_of_the_weights():
  model, w = random_model(GPT2, dtype="float32")
  chosen = all_edges(GPT2)[::17]
  found = edges.kernels(model, chosen)
  for pk, (ls, hs, lr, hr, i) in zip(found, chosen, strict=True):
    write = np.linalg.svd(w["W_O"][ls, hs].T, full_matrices=False)[0]
    read = w[f"W_{'QKV'[i]}"][lr][:, hr]
    read = np.linalg.svd(read, full_matrices=False)[0]
    assert pk == pytest.approx(((read.T @ write) ** 2).sum(), abs=1e-4)


def test_a_sample_is_measured_and_saved(tmp_path):
  model, _ = random_model(GPT2, dtype="float32")
  pairs = random_pairs(GPT2, [6, 8, 5], [3, 5, 2])
  data = edges.measure(model, pairs, layers=[0, 2], share=0.5, seed=3)
  assert data.kl.shape == (3, 24) and data.pk.shape == (24,)
  assert set(data.source_layer.values) == {0}
  results.save(data, tmp_path / "edges.nc")
  again = results.load(tmp_path / "edges.nc")
  rows, other = (edges.summarise(x) for x in (data, again))
  np.testing.assert_equal(rows, other)
  kl = data.kl.mean("example")
  expected = spearmanr(data.pk, kl).statistic
  assert rows[0]["input"] == "all" and rows[0]["edges"] == 24
  assert rows[0]["spearman"] == pytest.approx(expected, abs=1e-12)
  assert [row["input"] for row in rows[1:]] == ["Q", "K", "V"]


def table(pk, kl):
  """Edges from 5 sources into two inputs of two readers."""
  n = len(pk)
  index = np.arange(n)
  return xr.Dataset(
    {"kl": (("example", "edge"), np.stack([kl, kl])), "pk": ("edge", pk)},
    {
      "source_layer": ("edge", 0 * index),
      "source_head": ("edge", index % 5),
      "layer": ("edge", 1 + 0 * index),
      "head": ("edge", index // 5 % 2),
      "input": ("edge", np.array(["Q", "K"])[index // 10]),
    },
  )


def test_readers_are_told_apart_and_constant_ones_dropped():
  pk = np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 4)
  kl = np.concatenate([pk[:5], 10 * pk[:5], 0 * pk[:5], -pk[:5]])
  pk[5:10] = 2.0
  rows = {row["input"]: row for row in edges.summarise(table(pk, kl))}
  for name, median in (("Q", 1), ("K", -1), ("all", 0)):
    got = rows[name]["median_within_readers"]
    assert got == pytest.approx(median, abs=1e-12)
  assert rows["all"]["readers"] == 2
  assert rows["all"]["readers_of_constant_kernel"] == 1
  assert rows["all"]["readers_of_constant_kl"] == 1
  assert rows["K"]["without_effect"] == 5


def test_a_design_of_equal_kernels_is_excluded():
  pk = 5.332 + 0.004 * np.random.default_rng(0).random(20)
  rows = edges.summarise(table(pk, np.arange(20.0)))
  assert all(np.isnan(row["spearman"]) for row in rows)
  assert rows[0]["readers_of_constant_kernel"] == 4 and not rows[0]["readers"]


@pytest.mark.slow
def test_on_shared_axes_only_edges_of_one_index_have_an_effect():
  model, _ = random_model(AXES, scale=1.0, dtype="float32")
  pairs = random_pairs(AXES, [6, 8], [3, 5])
  data = edges.measure(model, pairs, share=0.4)
  kl = data.kl.mean("example").values
  own = (data["source_head"] == data["head"]).values
  assert (kl[~own] == 0).all() and (kl[own] > 0).all()
  np.testing.assert_allclose(data.pk, 4.0 * own, atol=1e-5)
  assert edges.summarise(data)[0]["spearman"] > 0.6
