"""Does the geometry report draw any model, and list every configuration?"""

import csv
import io

import pytest
import tiny_folder

from configs import geometry
from experiments import geometry_report
from headjax import command_line

TABLES = {"angles", "conservation", "heads", "pairs", "summary"}
PICTURES = {"alignment", "angles", "reads", "writes"}


@pytest.fixture
def call(tmp_path, monkeypatch):
  """Runs the script; returns its exit status."""
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))

  def run(*argv):
    with pytest.raises(SystemExit) as ended:
      command_line.run(geometry_report.main, [str(word) for word in argv])
    return ended.value.code

  return run


def read(path):
  with open(path, newline="") as file:
    return list(csv.DictReader(file))


def check_files(out):
  expected = {f"{name}.csv" for name in TABLES}
  expected |= {f"{name}.{end}" for name in PICTURES for end in ("pdf", "png")}
  assert {path.name for path in out.iterdir()} == expected


def test_a_row_is_measured_and_drawn(call, tmp_path, capsys):
  out = tmp_path / "out"
  assert call("--config", "all-common-axis@tiny", "--out", out) == 0
  check_files(out)
  found = {row["quantity"]: row["value"] for row in read(out / "summary.csv")}
  same = "PK with earlier writes, same index"
  assert float(found[f"V (weights), {same}"]) == pytest.approx(16, abs=1e-3)
  assert float(found[f"V (norm), {same}"]) == pytest.approx(15, abs=1e-3)
  assert found["V reads its own best, from layer 1"] == "100.0%"
  assert found["V (norm), rank"] == "15 to 15 of 16; deficient heads: 32"
  pairs = read(out / "pairs.csv")
  assert len(pairs) == 32 * 32
  lanes = [row for row in pairs if row["head"] != row["writer_head"]]
  assert all(float(row["Q_weights_pk"]) < 1e-9 for row in lanes)
  printed = capsys.readouterr().out
  assert all(value in printed for value in found.values())


def test_a_model_folder_is_measured_and_drawn(call, tmp_path):
  out = tmp_path / "out"
  folder = tiny_folder.write(tmp_path / "model")
  assert call("--model", folder, "--out", out) == 0
  check_files(out)


def test_the_table_has_one_line_for_every_configuration(call, capsys):
  assert call("--table") == 0
  rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
  assert [row["name"] for row in rows] == list(geometry.VARIANTS)
  names = " ".join(row["repository names"] for row in rows).split()
  assert sorted(names) == sorted(geometry.REPOSITORY_NAMES)
  [row] = [row for row in rows if row["name"] == "fixeddiag"]
  assert list(row.values()) == [
    "fixeddiag", "fixeddiag42", "R", "axis, 51 of 64 live", "free",
    "116968704",
  ]  # fmt: skip
  assert len({tuple(row.values())[3:] for row in rows}) == len(rows)


@pytest.mark.parametrize(
  ("argv", "parts"),
  [
    (["--config", "all-comon-axis"], ["variant", "all-common-axis"]),
    (["--config", "learned", "--model", "smollm2-135m"], ["options"]),
    ([], ["options", "--table"]),
    (["--model", "gpt5"], ["model", "gpt5"]),
  ],
)
def test_bad_options_are_one_line(argv, parts, call, tmp_path, capsys):
  assert call(*argv, "--out", tmp_path / "out") == 2
  [line] = capsys.readouterr().err.splitlines()
  assert all(part in line for part in parts)
  assert not (tmp_path / "out").exists()
  assert call("--config", "learned@tiny") == 2
