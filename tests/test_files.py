import numpy as np
import pytest
from one_line import refusal

from headjax.files import atomic, read_arrays, write_arrays


def test_a_finished_block_puts_the_file_in_place(tmp_path):
  path = tmp_path / "new" / "a.txt"
  with atomic(path) as part:
    part.write_text("whole")
    assert not path.exists()
    assert part.suffix == ".txt"
    assert part.parent == path.parent
  assert path.read_text() == "whole"
  assert [file.name for file in path.parent.iterdir()] == ["a.txt"]


def test_a_failed_block_leaves_the_old_file_and_no_other(tmp_path):
  path = tmp_path / "a.txt"
  path.write_text("old")
  with pytest.raises(KeyboardInterrupt), atomic(path) as part:
    part.write_text("ha")
    raise KeyboardInterrupt
  assert path.read_text() == "old"
  assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_arrays_come_back_or_the_file_is_refused(tmp_path):
  path = tmp_path / "new" / "arrays.npz"
  told = "arrays of a test", "remove it"
  assert read_arrays(path, *told) is None
  write_arrays(path, {"a": np.arange(3), "text": np.array("x")})
  found = read_arrays(path, *told)
  assert found["a"].tolist() == [0, 1, 2] and str(found["text"]) == "x"
  with open(path, "wb") as file:
    np.save(file, np.arange(3))
  with refusal(f"{path}: got unreadable file; expected arrays of a test"):
    read_arrays(path, *told)
  write_arrays(path, {"a": np.array([None])})
  with refusal("unreadable file", "remove it"):
    read_arrays(path, *told)
