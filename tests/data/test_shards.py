import hashlib

import numpy as np
import pytest
from one_line import refusal

from headjax.data.shards import PartialFolder

SETTINGS = {"source": "a", "sizes": [1, 2], "validation": None}
NONE = np.empty(0, int)


@pytest.fixture
def begin(tmp_path):
  return lambda **changed: PartialFolder(
    tmp_path / "a", SETTINGS | changed, "<u2"
  )


def interrupted(begin):
  """A folder with one finished shard and one that is not."""
  folder = begin()
  folder.add(np.arange(5), np.arange(2))
  folder.finish_shard(3, 2, 1)
  folder.add(np.arange(7), np.arange(4))
  folder.close()
  return folder


def test_finished_shards_are_on_disk_and_recorded(begin, tmp_path):
  folder = begin()
  folder.add(np.arange(5), NONE)
  folder.add(np.arange(300, 304), np.arange(2))
  assert (folder.train_tokens, folder.progress.train_tokens) == (9, 0)
  folder.finish_shard(3, 2, 1)
  assert (folder.train_tokens, folder.progress.train_tokens) == (9, 9)
  ids = np.fromfile(tmp_path / "a.partial" / "train-00000.bin", "<u2")
  assert ids.tolist() == [0, 1, 2, 3, 4, 300, 301, 302, 303]
  (shard,) = folder.progress.shards
  assert shard["sha256"] == hashlib.sha256(ids.tobytes()).hexdigest()
  assert folder.progress.validation_tokens == 2
  folder.close()


def test_only_finished_shards_are_left(begin, tmp_path):
  before = interrupted(begin).progress
  folder = begin()
  assert folder.progress == before
  assert folder.progress.documents == 3
  assert (tmp_path / "a.partial" / "validation.bin").stat().st_size == 4
  folder.add(np.array([9]), np.array([8]))
  folder.finish_shard(4, 3, 2)
  folder.give_name()
  sizes = {f.name: f.stat().st_size for f in (tmp_path / "a").iterdir()}
  assert sizes == {
    "train-00000.bin": 10,
    "train-00001.bin": 2,
    "validation.bin": 6,
  }


def test_without_a_finished_shard_nothing_is_left(begin, tmp_path):
  folder = begin()
  folder.add(np.arange(5), NONE)
  folder.close()
  assert not list(tmp_path.iterdir())


def test_an_empty_shard_is_none(begin):
  interrupted(begin)
  folder = begin()
  folder.finish_shard(9, 2, 1)
  folder.close()
  assert len(folder.progress.shards) == 1
  assert folder.progress.documents == 9


@pytest.mark.parametrize("n_hidden", [0, 1])
def test_a_kill_before_the_first_record_is_no_obstacle(
  begin, tmp_path, n_hidden
):
  (tmp_path / "a.partial").mkdir()
  for i in range(n_hidden):
    (tmp_path / "a.partial" / f".progress.{i}.part.json").write_text("{")
  folder = begin()
  folder.add(np.arange(5), NONE)
  folder.finish_shard(1, 1, 0)
  folder.give_name()
  names = sorted(file.name for file in (tmp_path / "a").iterdir())
  assert names == ["train-00000.bin", "validation.bin"]


def test_other_settings_are_refused(begin):
  interrupted(begin)
  with refusal("a.partial", "of another command", "delete it"):
    begin(source="b")


def test_a_foreign_folder_is_refused_and_kept(begin, tmp_path):
  (tmp_path / "a.partial").mkdir()
  (tmp_path / "a.partial" / "mine.txt").write_text("mine")
  with refusal("a.partial", "of another command"):
    begin()
  assert [f.name for f in (tmp_path / "a.partial").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_stands_in_the_way_is_refused(begin, tmp_path, kind):
  if kind == "folder":
    (tmp_path / "a").mkdir()
  elif kind == "file":
    (tmp_path / "a").touch()
  else:
    (tmp_path / "a").symlink_to("nowhere")
  with refusal("output folder", "does not exist yet"):
    begin()
  assert not (tmp_path / "a.partial").exists()
