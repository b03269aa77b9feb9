"""Does a circuit of one model leave another alone?"""

import dataclasses

import jax
import planted_circuit
import pytest
import xarray as xr
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


def rows_of(circuits, models):
  """As of `seeds.matrix`; a circuit is needed in its own model."""
  return [
    {
      "circuit": c, "model": m, "drop": 0.75 if c == m else 0.25 * i,
      "random_mean": 0.01 * i, "verdict": "causal" if c == m else "not causal",
    }
    for i, m in enumerate(models)
    for c in circuits
  ]  # fmt: skip


def test_a_matrix_is_a_row_a_circuit_for_every_architecture():
  rows = rows_of("ab", "ab") + rows_of("cd", "cde")
  first, second = map(seeds.wide, seeds.by_circuits(rows))
  assert first[1] == {
    "circuit": "b", "a": "0.000 (0.000)", "b": "0.750 (0.010)"
  }  # fmt: skip
  assert [list(line) for line in second] == [["circuit", *"cde"]] * 2
  assert seeds.by_circuits([]) == []


def test_models_of_one_architecture_belong_together():
  found = {
    name: xr.Dataset(attrs={"model_config": config})
    for name, config in [("x", "1"), ("y", "2"), ("z", "1")]
  }
  assert seeds.alike(found) == [["x", "z"], ["y"]]
