"""Does the table over cells say what the cells say?"""

import json

import numpy as np
import pytest
from one_line import refusal

from headjax.studies.writers.summary import (
  over_cells,
  read_rows,
  save_row,
  told,
)

ROW = {"model": "m", "task": "modular", "zero_verdict": "canonical"}


def folder(tmp_path, *rows):
  for i, row in enumerate(rows):
    save_row(ROW | row, tmp_path / f"cell{i}")
  return tmp_path


def test_rows_come_back_and_what_is_no_number_is_null(tmp_path):
  found = read_rows(
    folder(tmp_path, {"accuracy": 0.5, "swing": float("nan")}, {"task": "x"})
  )
  assert found[0] == ROW | {"accuracy": 0.5, "swing": None}
  assert found[1]["task"] == "x"


def test_p_values_are_adjusted_over_the_cells_that_have_one(tmp_path):
  rows = [ROW | {"shuffle_p": p} for p in (0.01, 0.04, 0.03)]
  found = over_cells([*rows, ROW])
  np.testing.assert_allclose(
    [row["shuffle_p_holm"] for row in found[:3]], [0.03, 0.06, 0.06]
  )
  np.testing.assert_allclose(
    [row["shuffle_p_bh"] for row in found[:3]], [0.03, 0.04, 0.04]
  )
  assert found[3] == ROW


def test_all_cells_are_told_together():
  rows = [
    ROW
    | {
      "writers": 4,
      "cancellers": 2,
      "top20_by_size_writers": 1,
      "top20_by_size_cancellers": 2,
      "induction_shared": 1,
      "induction_expected": 0.5,
      "induction_sd": 0.7,
      "induction_p_more": 0.4,
    },
    ROW | {"zero_verdict": "none", "writers": 7},
  ]
  lines = told(rows)
  assert lines[0] == "canonical in 1 of 2 cells"
  assert lines[1:3] == [
    "Todd's top 20 by size: 1 of 4 writers",
    "Todd's top 20 by size: 2 of 2 cancellers",
  ]
  assert lines[3].startswith("induction heads: 1 shared, 0.50 by chance")
  assert told([ROW]) == ["canonical in 1 of 1 cells"]


@pytest.mark.parametrize("content", ["{", "[1]", json.dumps({"model": "m"})])
def test_what_is_no_cell_is_refused(tmp_path, content):
  folder(tmp_path, {})
  (tmp_path / "cell0" / "cell.json").write_text(content)
  with refusal("cell.json", "measure it again"):
    read_rows(tmp_path)
