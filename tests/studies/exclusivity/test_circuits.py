"""Are the edges of circuits counted by what they join?"""

import numpy as np
import pytest
import xarray as xr
from helpers import PUBLIC, random_model, random_pairs

from headjax import results
from headjax.interventions.circuits import find_circuit
from headjax.models.config import ModelConfig
from headjax.studies.exclusivity import circuits

SMALL = ModelConfig(2, 2, 8, 4, 12, 13, 8)


@pytest.mark.slow
def test_each_threshold_has_its_circuit(tmp_path):
  model, _ = random_model(SMALL, scale=0.5, dtype="float32")
  pairs = random_pairs(SMALL, [5, 6, 4], [1, 3, 0])
  data = circuits.measure(model, pairs, thresholds=(0.0005, 0.01), speculate=4)
  results.save(data, tmp_path / "circuits.nc")
  rows = circuits.summarise(results.load(tmp_path / "circuits.nc"))
  assert rows == circuits.summarise(data)
  for row, threshold in zip(rows, (0.0005, 0.01), strict=True):
    alone = find_circuit(model, pairs, threshold, speculate=4)
    assert row["edges"] == int(alone.present.sum())
    assert row["kl"] == pytest.approx(alone.attrs["value"])
    assert row["decisions"] == alone.attrs["decisions"]
  assert rows[0]["edges"] > rows[1]["edges"]
  assert "threshold" not in data.attrs and data.attrs["method"] == "acdc"


def test_edges_are_counted_by_hand():
  receiver = ["head", "head", "mlp", "unembedding"]
  sender = ["embedding", "positions", "head", "head", "mlp"]
  present = np.array(
    [[1, 1, 0, 0, 0], [1, 0, 1, 0, 1], [1, 0, 1, 0, 0], [1, 0, 0, 0, 1]]
  )
  data = xr.Dataset(
    {
      "present": (("threshold", "receiver", "sender"), present[None]),
      "value": ("threshold", [0.25]),
      "decisions": ("threshold", [7]),
    },
    {
      "threshold": [0.001],
      "receiver_kind": ("receiver", receiver),
      "sender_kind": ("sender", sender),
    },
  )
  assert circuits.summarise(data) == [
    {
      "threshold": 0.001, "edges": 9, "into_attention": 5,
      "into_attention_from_embedding": 2, "into_attention_from_positions": 1,
      "into_attention_from_head": 1, "into_attention_from_mlp": 1,
      "heads": 1, "mlps": 1, "kl": 0.25, "decisions": 7,
    }
  ]  # fmt: skip


def test_a_model_that_cannot_be_split_is_refused():
  model, _ = random_model(PUBLIC["olmo2"], dtype="float32")
  with pytest.raises(ValueError, match="cannot be split"):
    circuits.measure(model, random_pairs(PUBLIC["olmo2"], [5], [1]))
