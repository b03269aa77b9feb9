"""Does a circuit of one model leave another alone?"""

import dataclasses

import jax
import planted_circuit
import pytest
from one_line import refusal

from headjax.studies.spectral import seeds

CIRCUITS = {"one": [(0, 1), (1, 2)], "other": [(0, 2), (1, 3)], "none": []}


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def shifted(model):
  """The same model with every head one index further on."""
  attention = dict(model.params["blocks"]["attention"])
  for name in ("W_Q", "W_K", "W_V"):
    attention[name] = jax.numpy.roll(attention[name], 1, axis=2)
  attention["W_O"] = jax.numpy.roll(attention["W_O"], 1, axis=1)
  blocks = model.params["blocks"] | {"attention": attention}
  return dataclasses.replace(model, params=model.params | {"blocks": blocks})


def test_circuits_belong_to_their_seed():
  one = planted_circuit.planted()
  models = [("one", one), ("other", shifted(one))]
  rows = planted_circuit.rows(16)
  found = seeds.exchange(models, CIRCUITS, rows, draws=10, seeds=0)
  table = {(r["circuit"], r["model"]): r for r in seeds.matrix(found)}
  assert set(table) == {(a, b) for a in ("one", "other") for b in found}
  for (circuit, model), row in table.items():
    assert row["own"] is (circuit == model)
    assert row["base"] > 0.9
    wanted = row["base"] if row["own"] else 0
    assert row["drop"] == pytest.approx(wanted, abs=0.15)
    assert (row["verdict"] == "causal") is row["own"]


def test_seeds_without_circuits_are_refused():
  with refusal("circuits: got none with a head"):
    seeds.exchange([], {"one": []}, planted_circuit.rows(1))
