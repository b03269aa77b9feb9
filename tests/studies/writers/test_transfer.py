"""Are groups and heads judged on other templates as on their own?"""

import dataclasses
import types

import jax.numpy as jnp
import numpy as np
import planted_writers as planted
import pytest
import xarray as xr
from helpers import GPT2, random_model

from headjax.models import weights
from headjax.studies.writers import transfer
from headjax.studies.writers.cell import GROUPS

NAMES = [*GROUPS, "L1.H2"]


def lesions(*changes):
  """Of 60 prompts, with a little noise."""
  noise = 0.01 * np.random.default_rng(0).normal(size=(60, 1))
  base = np.ones(60)
  return xr.Dataset(
    {
      "base": ("example", base),
      "lesioned": (
        ("example", "group_of_heads"),
        base[:, None] + np.array(changes) + noise,
      ),
    },
    {"group_of_heads": NAMES},
  )


def test_the_verdict_of_another_task_is_relaxed():
  data = {
    "modular": lesions(-0.5, 0.3, -0.9, 0.2),
    "antonym": lesions(-0.5, -0.3, -0.8, -0.2),
  }
  found = transfer.transferred(data, draws=200)
  # Not attenuated, so not canonical: but the first three conditions hold.
  assert found["modular"].verdict.relaxed
  assert not found["modular"].verdict.attenuated
  assert not found["antonym"].verdict.relaxed
  assert found["modular"].accuracy == 1.0
  rows = transfer.transfer_rows(found)
  assert [row["without"] for row in rows] == NAMES * 2
  turned = [row for row in rows if row["without"] == "L1.H2"]
  assert [row["change"] > 0 for row in turned] == [True, False]
  assert turned[0]["share"] == pytest.approx(2 / 3, rel=0.02)


def test_the_leading_canceller_has_the_largest_share():
  shares = types.SimpleNamespace(
    direct=types.SimpleNamespace(mean=np.array([-0.5, -0.1, -0.3]))
  )
  cell = types.SimpleNamespace(
    candidates=[(0, 0), (0, 1), (1, 1)],
    shares=shares,
    of_role=lambda role: [(0, 1), (1, 1)],
  )
  assert transfer.leading_canceller(cell) == (1, 1)
  cell.of_role = lambda role: []
  assert transfer.leading_canceller(cell) is None


def test_composition_is_that_of_dense_matrices(x64):
  model, w = random_model(GPT2)
  [row] = transfer.value_composition(model, (2, 1), [(0, 3)])

  def ov(layer, head):
    return w["W_V"][layer, :, head] @ w["W_O"][layer, head]

  first, second = ov(0, 3), ov(2, 1)
  norm = np.linalg.norm
  wanted = norm(first @ second) / norm(first) / norm(second)
  assert row["composition"] == pytest.approx(wanted, rel=1e-5)
  assert (row["head"], row["source"]) == ("L2.H1", "L0.H3")
  zero = jnp.zeros_like(weights.get(model.params, "W_V"))
  params = weights.replaced(model.params, {"W_V": zero})
  model = dataclasses.replace(model, params=params)
  [row] = transfer.value_composition(model, (2, 1), [(0, 3)])
  assert np.isnan(row["composition"])


@pytest.mark.slow
def test_other_templates_are_run_or_refused():
  model = planted.circuit()
  discovery = types.SimpleNamespace(p=np.zeros((3, 6)))
  groups = {"writer": planted.WRITERS, "canceller": [planted.CANCELLER]}
  cell = types.SimpleNamespace(discovery=discovery, of_role=groups.get)
  data, reasons = transfer.on_templates(
    model, cell, ["modular", "antonym"], heads=[(2, 0)], examples=8
  )
  assert data.keys() == {"modular"} and reasons.keys() == {"antonym"}
  assert data["modular"].group_of_heads.values.tolist() == [*GROUPS, "L2.H0"]
  assert np.abs(data["modular"].lesioned - data["modular"].base).max() > 0.01
