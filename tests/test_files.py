import pytest

from headjax.files import atomic


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
