"""Does the script refuse what it cannot show, and leave nothing behind?"""

import numpy as np
import pytest
import xarray as xr

from experiments import report
from headjax import command_line, results


@pytest.fixture
def call(tmp_path, monkeypatch):
  """Runs the script; returns its exit status."""
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))

  def run(*argv):
    with pytest.raises(SystemExit) as ended:
      command_line.run(report.main, list(map(str, argv)))
    return ended.value.code

  return run


@pytest.fixture
def folder(tmp_path):
  top = tmp_path / "found"
  top.mkdir()
  score = (("kind", "layer", "head"), np.ones((2, 3, 4)))
  data = xr.Dataset({"score": score}, {"kind": ["a", "b"]})
  results.save(data.assign_attrs({results.MARK: "0"}), top / "scores.nc")
  (top / "t.csv").write_text("a,b\n1,2\n")
  return top


def test_a_page_is_written_where_it_should(call, folder, tmp_path, capsys):
  out = tmp_path / "new" / "page.html"
  assert call(folder, "--out", out) == 0
  assert "page.html" in capsys.readouterr().out
  assert 4e6 < out.stat().st_size < 8e6
  before = out.read_bytes()
  assert call(folder, "--out", out) == 0
  assert out.read_bytes() == before


@pytest.mark.parametrize(
  ("broken", "parts"),
  [
    ("missing", ["result", "missing", "a folder of results"]),
    ("empty", ["result", "empty", "without a .nc"]),
    ("scores.nc", ["scores.nc", "a headjax result"]),
    ("t.csv", ["t.csv", "cells"]),
    ("f.png", ["f.png", "PNG"]),
  ],
)
def test_bad_results_are_refused(broken, parts, call, folder, tmp_path, capsys):
  named = folder
  if "." in broken:
    data = (folder / "scores.nc").read_bytes()[:-900]
    other = {"t.csv": b"a\n1,2\n", "f.png": b"\x89PNG"}
    (folder / broken).write_bytes(other.get(broken, data))
  else:
    named = tmp_path / broken
    if broken == "empty":
      named.mkdir()
  refused(call(named, "--out", tmp_path / "out" / "p.html"), parts, capsys)
  assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
  ("options", "parts"),
  [
    ([], ["--out"]),
    (["--out", "page.txt"], ["--out", "page.txt", ".html"]),
    (["--out", "p.html", "--most-mb", "0"], ["--most-mb", "0"]),
  ],
)
def test_bad_options_are_refused(
  options, parts, call, folder, tmp_path, monkeypatch, capsys
):
  monkeypatch.chdir(tmp_path)
  refused(call(folder, *options), parts, capsys)
  assert not list(tmp_path.glob("p*.html"))


def refused(code, parts, capsys):
  """One line that names the fault, and status 2."""
  lines = capsys.readouterr().err.splitlines()
  assert code == 2 and len(lines) == 1, lines
  for part in ["error: ", *parts]:
    assert part in lines[0], lines[0]
