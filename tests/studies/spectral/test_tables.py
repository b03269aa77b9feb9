"""Do the tables say what the measurements hold?"""

import numpy as np
import pytest
import xarray as xr
from one_line import refusal
from spectral_series import series

from headjax.data.probes import INDIRECT_OBJECT
from headjax.studies.spectral import tables


def test_a_single_checkpoint_has_no_tables_along_training():
  one = series().isel(step=4, drop=True)
  made = tables.of_measurement(one)
  assert set(made) == {"heads", "class_shares", "conserved"}
  assert len(made["heads"]) == 4
  [head] = [r for r in made["heads"] if (r["layer"], r["head"]) == (1, 0)]
  assert head["class"] == "induction" and head["induction"] == 90
  assert [r["first"] for r in made["class_shares"]] == [0.5, 0]


def test_a_series_has_them_all():
  made = tables.of_measurement(series([2, 4, 0, 1, 3]))
  assert made["integral"][0]["layer"] == 1
  assert [r["recall"] for r in made["recall_induction"]][-1] == 1
  assert len(made["along_induction"]) == 10
  assert len(made["foretold_induction"]) == 5
  assert made["foretold_previous"] == []
  few = tables.of_measurement(series([0, 4]))
  assert "integral" not in few and "recall_induction" in few


def test_both_estimators_and_baselines_are_told_apart():
  made = {
    (r["baseline"], r["estimator"]): r for r in tables.conserved(series())
  }
  assert len(made) == 10
  assert made["empirical", "above the null"]["fraction"] == 0.5
  # By the uniform baseline all is a hundred times as selective.
  assert made["uniform", "above the null"]["null_floor"] == 150
  assert made["empirical", "first 30.0% with a class"]["fraction"] == 0.25
  assert made["empirical", "first 100.0% with a class"]["fraction"] == 0.75


def test_circuits_without_a_head_are_left_out():
  assert tables.circuits(series()) == {"induction": [(1, 0), (1, 1)]}


def test_names_add_three_circuits():
  final = series().isel(step=4, drop=True)
  more = xr.zeros_like(final.attention.isel(kind=[0, 1])) + 1.0
  more = more.assign_coords(kind=["name_mover", "s_inhibition"])
  more[0, 0, 1] = 70
  whole = xr.concat([final.attention, more], "kind")
  final = final.drop_vars("attention").drop_vars("kind")
  final = final.assign(attention=whole)
  assert final.kind.values.tolist() == list(INDIRECT_OBJECT)
  made = tables.circuits(final)
  assert made["name_mover"] == [(0, 1)]
  # None inhibits: the five strongest stand for them, here all four.
  assert len(made["s_inhibition"]) == 4
  assert made["name_mover + s_inhibition"] == made["s_inhibition"]


def swept(difference):
  """Two circuits, of a head each; the second matters more."""
  rank = np.zeros((10, 6), int)
  for place in ((slice(5), 0), (slice(10), 3), (slice(10), [1, 4])):
    rank[place] = 1
  role = ["circuit", "upper", "random"] * 2
  return xr.Dataset(
    {
      "rank": (("example", "group"), rank),
      "logit": (("example", "group"), np.zeros((10, 6))),
      "members": (("group", "layer", "head"), np.eye(6)[:, None].astype(int)),
      "base_rank": ("example", np.zeros(10, int)),
      "base_logit": ("example", np.ones(10)),
      "base_difference": ("example", np.array(difference, float)),
    },
    {"circuit": ("group", ["a"] * 3 + ["b"] * 3), "role": ("group", role)},
    attrs={
      "circuits": '{"a": [[0, 0]], "b": [[0, 3]]}',
      "short": '{"a": [], "b": []}',
      "chance": 0.01,
    },
  )


@pytest.mark.parametrize(("right", "solves"), [(6, True), (5, False)])
def test_the_largest_differential_is_primary(right, solves):
  table = tables.verdicts(swept([1] * right + [-1] * (10 - right)))
  assert [r["primary"] for r in table] == [False, True]
  assert [r["differential"] for r in table] == [0.5, 1.0]
  assert [r["heads"] for r in table] == ["L0H0", "L0H3"]
  assert [r["solves"] for r in table] == [solves] * 2


def test_without_foils_nothing_is_preferred():
  table = tables.verdicts(swept([0] * 10))
  assert table[0]["solves"] is None and np.isnan(table[0]["preferred"])


def test_other_data_leave_the_first_circuit_or_not():
  made = tables.shift(series([4, 3, 2, 1, 0]), 40)
  row = made["shift"][0]
  assert (row["kind"], row["before"], row["after"]) == (
    "induction", "L1H0", "L1H0 L1H1"
  )  # fmt: skip
  assert row["jaccard"] == 0.5 and row["last_step"] == 80
  along = made["shift_induction"]
  assert [(r["step"], r["selectivity"]) for r in along] == [(40, 60), (80, 90)]
  assert np.isnan(made["shift"][1]["jaccard"])
  for step in (80, 41):
    with refusal(f"--shift: got {step}; expected one of 0, 10, 20, 40"):
      tables.shift(series(), step)


def test_first_token_heads_are_told_by_layer_and_step():
  table = tables.of_measurement(series())["first_by_layer"]
  assert table[3] == {"step": 40, "layer_0": 0.5, "layer_1": 0.0}
  assert [row["step"] for row in table] == [0, 10, 20, 40, 80]


def test_sizes_are_means_over_seeds():
  small = {"model_config": "a", "parameters": 10}
  measured = {
    "big": series(model_config="b", parameters=90),
    "one": series(**small),
    "two": series([0, 1, 2, 3], **small),
  }
  rows = tables.sizes(measured)
  assert [row["parameters"] for row in rows] == [10, 90]
  first = rows[0]
  assert first["models"] == 2 and first["induction"] == 1.5
  assert (first["induction_low"], first["induction_high"]) == (1, 2)
  assert rows[1]["above_null"] == rows[1]["above_null_low"] == 0.5
  names = {row["model"]: row for row in tables.overview(measured)}
  assert names["big"]["induction"] == 2 and names["big"]["first_share"] == 0.25
