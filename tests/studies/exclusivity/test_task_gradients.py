"""Do cosines and lane shares follow from the saved products?"""

import dataclasses

import numpy as np
import pytest
from helpers import GPT2, random_model, random_pairs, random_tokens

from headjax import results
from headjax.geometry.designs import WriteDesign
from headjax.interventions.writes import mean_writes
from headjax.models import weights
from headjax.models.decoder import run
from headjax.studies.exclusivity import task_gradients

AXIS = dataclasses.replace(
  GPT2, d_head=4, d_key=None, write=WriteDesign("axis", 0.3)
)


def planted(gradients, projectors):
  """A dataset of products made from gradients `[layer, row, d_model]`."""
  n_layers, n_heads = projectors.shape[:2]
  onto = np.einsum("lrd,lhde->lhre", gradients, projectors)
  flat = onto.reshape(n_layers * n_heads, -1)
  whole = gradients.reshape(n_layers, -1)
  shape = (n_layers, n_heads) * 2
  found = task_gradients.xr.Dataset(
    {
      "task_layers": (task_gradients.HEADS[::2], whole @ whole.T),
      "task_heads": (
        task_gradients.HEADS, (flat @ flat.T).reshape(shape),
      ),
      "writes": (task_gradients.HEADS, np.zeros(shape)),
    }
  )  # fmt: skip
  return found, whole, onto


def cosine(a, b):
  return np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b))


def test_numbers_are_those_of_the_gradients_themselves():
  rng = np.random.default_rng(0)
  gradients = rng.normal(size=(3, 5, 4)) + 1
  planes = np.linalg.qr(rng.normal(size=(3, 4, 4)))[0].reshape(3, 4, 2, 2)
  columns = np.moveaxis(planes, 2, 1)
  projectors = columns @ columns.swapaxes(-1, -2)
  found, whole, onto = planted(gradients, projectors)
  [row] = task_gradients.summarise(found)
  adjacent = [cosine(whole[0], whole[1]), cosine(whole[1], whole[2])]
  assert row["adjacent"] == pytest.approx(np.mean(adjacent))
  pairs = [(0, 1), (0, 2), (1, 2)]
  same = [cosine(onto[a, h], onto[b, h]) for a, b in pairs for h in (0, 1)]
  other = [cosine(onto[a, h], onto[b, 1 - h]) for a, b in pairs for h in (0, 1)]
  assert row["same_index"] == pytest.approx(np.mean(same))
  assert row["other_index"] == pytest.approx(np.mean(other))
  shares = task_gradients.lane_shares(found)
  for layer, head in np.ndindex(3, 2):
    expected = np.sum(onto[layer, head] ** 2) / np.sum(whole[layer] ** 2)
    assert shares[layer, head] == pytest.approx(expected)
  np.testing.assert_allclose(shares.sum(1), 1)
  assert np.isnan(task_gradients.writes(found)["same_index"])


def test_one_gradient_in_shared_spaces_is_perfectly_shared():
  gradients = np.tile(
    np.random.default_rng(1).normal(size=(1, 5, 4)), (3, 1, 1)
  )
  projectors = np.stack([np.diag([1.0, 1, 0, 0]), np.diag([0, 0, 1.0, 1])])
  found, *_ = planted(gradients, np.tile(projectors, (3, 1, 1, 1)))
  [row] = task_gradients.summarise(found)
  assert row["adjacent"] == row["same_index"] == pytest.approx(1)
  assert row["other_index"] == pytest.approx(0)  # orthogonal blocks


@pytest.mark.slow
def test_a_model_is_measured_with_its_task_its_loss_and_its_writes(tmp_path):
  model, _ = random_model(AXIS, dtype="float32")
  pairs = random_pairs(AXIS, [6, 4], [2, 1])
  found = task_gradients.measure(
    model, pairs, sequences=random_tokens(AXIS, (2, 7))
  )
  rows = task_gradients.summarise(found)
  assert [row["gradient"] for row in rows] == ["task", "loss"]
  for gradient in ("task", "loss"):
    shares = task_gradients.lane_shares(found, gradient)
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-5)
  results.save(found, tmp_path / "gradients.nc")
  assert results.load(tmp_path / "gradients.nc").identical(found)
  assert "loss_heads" not in task_gradients.measure(model, pairs)


def test_mean_writes_are_those_at_the_answers(x64):
  model, _ = random_model(GPT2)
  pairs = random_pairs(GPT2, [6, 4, 5], [2, 1, 1])
  W_O = np.asarray(weights.per_query_head(model.params, GPT2, "W_O"))
  expected = np.zeros(W_O.shape[:2] + W_O.shape[3:])
  for ids, n in zip(pairs.clean, pairs.lengths, strict=True):
    _, acts = run(model.model, model.params, ids[None, :n])
    z = np.asarray(acts.z)[:, 0, -1]
    expected += np.einsum("lhe,lhed->lhd", z, W_O) / 3
  found = mean_writes(model, pairs, examples=2)
  np.testing.assert_allclose(found, expected, atol=1e-12)
  measured = task_gradients.measure(model, pairs).writes.values
  product = expected[0, 1] @ expected[2, 3]
  assert measured[0, 1, 2, 3] == pytest.approx(product)
