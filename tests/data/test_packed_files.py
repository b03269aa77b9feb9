import gzip
import sys

import pytest
from one_line import refusal

from headjax.data.packed_files import open_text

TEXT = "\ufeffone\r\ntwo\x85 2\n" + "é汉 " * 400_000


@pytest.fixture
def zstandard():
  return pytest.importorskip("zstandard")


def read(path):
  with open_text(path) as file:
    return file.read()


def test_plain_and_gzip_give_the_text_as_it_is(tmp_path):
  (tmp_path / "a.txt").write_bytes(TEXT.encode())
  (tmp_path / "a.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
  assert read(tmp_path / "a.txt") == TEXT[1:]
  assert read(tmp_path / "a.txt.gz") == TEXT[1:]


def test_lines_end_at_newlines_only(tmp_path):
  (tmp_path / "a.txt").write_bytes(TEXT[:20].encode())
  with open_text(tmp_path / "a.txt") as file:
    assert list(file) == ["one\r\n", "two\x85 2\n", "é汉 é汉 é"]


@pytest.mark.parametrize("cuts", [[], [10], [10, 10, 700_000]])
def test_zstd_gives_all_frames(tmp_path, zstandard, cuts):
  content = TEXT.encode()
  edges = [0, *cuts, len(content)]
  frames = [
    zstandard.compress(content[a:b])
    for a, b in zip(edges, edges[1:], strict=False)
  ]
  (tmp_path / "a.zst").write_bytes(b"".join(frames))
  assert read(tmp_path / "a.zst") == TEXT[1:]


def test_an_empty_file_is_an_empty_text(tmp_path, zstandard):
  for name in ("a.txt", "a.txt.zst"):
    (tmp_path / name).touch()
    assert read(tmp_path / name) == ""


@pytest.mark.parametrize("keep", [3, 40, 0.5, -1])
@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_truncated_file_is_no_shorter_text(tmp_path, suffix, keep):
  if suffix == ".gz":
    packed = gzip.compress(TEXT.encode())
  else:
    packed = pytest.importorskip("zstandard").compress(TEXT.encode())
  n = int(keep * len(packed)) if isinstance(keep, float) else keep
  (tmp_path / f"a{suffix}").write_bytes(packed[:n])
  with pytest.raises((OSError, EOFError)):
    read(tmp_path / f"a{suffix}")


def test_what_is_no_zstd_is_an_error(tmp_path, zstandard):
  (tmp_path / "a.zst").write_bytes(b"plain text")
  with pytest.raises(OSError, match="not a zstd file"):
    read(tmp_path / "a.zst")


def test_without_the_package_its_installation_is_named(tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, "zstandard", None)
  (tmp_path / "a.zst").touch()
  with refusal("a.zst", "no installed zstandard", "pip install"):
    open_text(tmp_path / "a.zst")
