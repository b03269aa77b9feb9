import hashlib
import io
import subprocess
import tarfile
import zipfile

import pytest
from one_line import refusal

from headjax.data.archives import Archive, fetch

SETUP = """
import pathlib
pathlib.Path({marker!r}).touch()
raise SystemExit("was run")
"""
METADATA = "Metadata-Version: 2.1\nName: texts\nVersion: 1.0\n"


@pytest.fixture
def index(tmp_path, monkeypatch):
  """A folder that pip takes for its only index."""
  folder = tmp_path / "index"
  folder.mkdir()
  monkeypatch.setenv("PIP_NO_INDEX", "1")
  monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
  monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
  monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
  return folder


def source_archive(folder, marker):
  """A source archive whose setup.py leaves a mark."""
  path = folder / "texts-1.0.tar.gz"
  files = {"setup.py": SETUP.format(marker=str(marker)), "PKG-INFO": METADATA}
  with tarfile.open(path, "w:gz") as archive:
    for name, text in files.items():
      entry = tarfile.TarInfo(f"texts-1.0/{name}")
      entry.size = len(text)
      archive.addfile(entry, io.BytesIO(text.encode()))
  return path


def wheel(folder, tag):
  """A wheel without code."""
  path = folder / f"texts-1.0-{tag}.whl"
  with zipfile.ZipFile(path, "w") as archive:
    archive.writestr("texts-1.0.dist-info/METADATA", METADATA)
    archive.writestr("texts-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    archive.writestr("texts-1.0.dist-info/RECORD", "")
  return path


def of(path):
  digest = hashlib.sha256(path.read_bytes()).hexdigest()
  return Archive("texts", "1.0", path.name, digest)


def test_a_source_archive_is_fetched_and_not_run(index, tmp_path):
  path = source_archive(index, tmp_path / "marker")
  got = fetch(of(path), tmp_path / "cache")
  assert got == tmp_path / "cache" / path.name
  assert got.read_bytes() == path.read_bytes()
  assert not (tmp_path / "marker").exists()
  assert [file.name for file in got.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
  "tag",
  ["py3-none-any", "cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64"],
)
def test_a_wheel_is_fetched_whatever_this_machine_is(index, tmp_path, tag):
  path = wheel(index, tag)
  got = fetch(of(path), tmp_path / "cache")
  assert got.read_bytes() == path.read_bytes()


def test_what_is_in_the_cache_is_not_fetched_again(tmp_path, monkeypatch):
  path = wheel(tmp_path, "py3-none-any")
  monkeypatch.setattr(subprocess, "run", None)
  assert fetch(of(path), tmp_path) == path


def test_another_file_in_the_cache_is_refused(tmp_path):
  path = wheel(tmp_path, "py3-none-any")
  archive = of(path)
  path.write_bytes(b"something else")
  with refusal(str(path), "sha256", archive.sha256, "delete the file"):
    fetch(archive, tmp_path)


def test_another_file_in_the_index_is_refused(index, tmp_path):
  path = source_archive(index, tmp_path / "marker")
  wanted = Archive("texts", "1.0", path.name, "0" * 64)
  with refusal("download of texts 1.0", "package index"):
    fetch(wanted, tmp_path / "cache")
  assert not (tmp_path / "marker").exists()
  assert not list((tmp_path / "cache").glob("*"))


def test_a_package_that_is_not_there_is_refused(index, tmp_path):
  wanted = Archive("texts", "2.0", "texts-2.0.tar.gz", "0" * 64)
  with refusal("download of texts 2.0", "No matching distribution"):
    fetch(wanted, tmp_path / "cache")


def test_the_users_cache_is_the_default(tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  folder = tmp_path / "headjax" / "archives"
  folder.mkdir(parents=True)
  path = wheel(folder, "py3-none-any")
  assert fetch(of(path)) == path
