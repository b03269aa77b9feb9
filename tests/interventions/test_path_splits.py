"""Do a head's paths sum to its effect, and do the orders differ by I?"""

import jax
import numpy as np
import pytest
import slow_clamps
import xarray as xr
from held_models import held_model
from helpers import GPT2, SCREENING, random_pairs

from headjax.interventions import clamps
from headjax.interventions.path_splits import path_holds, path_splits


def test_splits_of_known_numbers():
  effect = xr.DataArray(
    [[10.0, 6.0, 5.0, 2.0], [1.0, 1.0, 1.0, 1.0]],
    dims=("source", "hold"),
    coords={"hold": ["nothing", "heads", "mlps", "everything"]},
    attrs={"units": "logits"},
  )
  found = path_splits(effect)
  assert found.total.values.tolist() == [10, 1]
  assert found.direct.values.tolist() == [2, 1]
  # 10 - 6 - 5 + 2
  assert found.interaction.values.tolist() == [1, 0]
  mlps, heads = (found.sel(released_first=name) for name in ("mlps", "heads"))
  assert mlps.via_mlps.values.tolist() == [4, 0]
  assert mlps.via_attention.values.tolist() == [4, 0]
  assert heads.via_mlps.values.tolist() == [5, 0]
  assert heads.via_attention.values.tolist() == [3, 0]
  assert found.direct.attrs["units"] == "logits"


def test_a_missing_hold_is_named():
  effect = xr.DataArray(
    np.zeros(2), dims="hold", coords={"hold": ["nothing", "heads"]}
  )
  with pytest.raises(ValueError, match="no hold mlps or everything"):
    path_splits(effect)


def test_orders_differ_by_the_interaction_in_a_model(x64, monkeypatch):
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  model, _ = held_model(GPT2)
  pairs = random_pairs(GPT2, [8, 8], [3, 2])
  holds = path_holds(GPT2)
  data = clamps.clamp_heads(model, pairs, holds)
  slow = slow_clamps.effects(model, pairs, *holds.values())
  for name, want in zip(holds, slow, strict=True):
    np.testing.assert_allclose(
      data.effect.sel(hold=name), want.reshape(12, 2).T, rtol=0, atol=1e-10
    )
  found = path_splits(data.effect)
  assert np.abs(found.interaction).max() > 1e-3
  mlps, heads = (found.sel(released_first=name) for name in ("mlps", "heads"))
  for one in (mlps, heads):
    np.testing.assert_allclose(
      one.direct + one.via_mlps + one.via_attention, found.total, atol=1e-12
    )
  np.testing.assert_allclose(
    mlps.via_attention - heads.via_attention, found.interaction, atol=1e-12
  )
  np.testing.assert_allclose(
    heads.via_mlps - mlps.via_mlps, found.interaction, atol=1e-12
  )
  # Nothing lies behind the last layer but its MLP.
  last = found.sel(released_first="mlps").isel(source=slice(8, 12))
  np.testing.assert_allclose(last.via_attention, 0, atol=1e-12)
  assert np.abs(last.via_mlps).max() > 1e-3


def test_without_mlps_only_attention_is_left(x64, monkeypatch):
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  model, _ = held_model(SCREENING)
  pairs = random_pairs(SCREENING, [8, 8], [3, 2])
  found = path_splits(
    clamps.clamp_heads(model, pairs, path_holds(SCREENING)).effect
  )
  assert np.abs(found.via_attention).max() > 1e-4
  np.testing.assert_allclose(found.via_mlps, 0, atol=1e-12)
  np.testing.assert_allclose(found.interaction, 0, atol=1e-12)
