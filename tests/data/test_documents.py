import gzip
import json

import pytest
from one_line import refusal

from headjax.data.documents import from_folder


def lines(*texts, field="text"):
  return "".join(json.dumps({field: text, "n": 1}) + "\n" for text in texts)


@pytest.fixture
def folder(tmp_path):
  """Files of all kinds, among others."""
  (tmp_path / "b.txt").write_text("B\n\nb")
  (tmp_path / "a").mkdir()
  (tmp_path / "a" / "z.md").write_text("# Z")
  (tmp_path / "a" / "c.jsonl").write_text(lines("c1", "", "c\u20283") + "\n \n")
  (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(lines("d1").encode()))
  (tmp_path / "e.jsonl.txt.gz").write_bytes(gzip.compress(b"E"))
  for other in ("x.py", ".hidden.txt", "notes", "archive.gz", "txt"):
    (tmp_path / other).write_text("no")
  (tmp_path / "folder.txt").mkdir()
  (tmp_path / ".git").mkdir()
  (tmp_path / ".git" / "a.txt").write_text("no")
  return tmp_path


ALL = ["c1", "", "c\u20283", "# Z", "B\n\nb", "d1", "E"]


def test_documents_come_in_the_order_of_paths(folder):
  assert list(from_folder(folder).read(0)) == ALL


@pytest.mark.parametrize("start", range(9))
def test_reading_can_begin_anywhere(folder, start):
  assert list(from_folder(folder).read(start)) == ALL[start:]


def test_zstd_files_take_part(folder):
  zstandard = pytest.importorskip("zstandard")
  packed = zstandard.compress(lines("é", "f2").encode())
  (folder / "f.jsonl.zst").write_bytes(packed)
  source = from_folder(folder)
  assert list(source.read(6)) == ["E", "é", "f2"]
  assert source.packages == ("zstandard",)


def test_another_field_can_hold_the_text(tmp_path):
  (tmp_path / "a.jsonl").write_text(lines("a", field="body"))
  assert list(from_folder(tmp_path, field="body").read(0)) == ["a"]


def test_the_identity_follows_files_and_field(folder):
  first = from_folder(folder)
  assert first.name == folder.name
  assert from_folder(folder).identity == first.identity
  assert from_folder(folder, field="body").identity != first.identity
  (folder / "x.py").write_text("changed")
  assert from_folder(folder).identity == first.identity
  (folder / "b.txt").write_text("longer than before")
  assert from_folder(folder).identity != first.identity


@pytest.mark.parametrize(
  ("line", "parts"),
  [
    ("{", ["a.jsonl, line 2", "a JSON object"]),
    ("[1]", ["a.jsonl, line 2, field text", "NoneType"]),
    ('{"body": "x"}', ["a.jsonl, line 2, field text", "NoneType"]),
    ('{"text": 3}', ["a.jsonl, line 2, field text", "int"]),
    ('{"text": "\\ud800"}', ["a.jsonl, line 2, field text", "surrogate"]),
  ],
)
def test_a_line_without_text_is_refused(tmp_path, line, parts):
  (tmp_path / "a.jsonl").write_text(lines("fine") + line)
  with refusal(*parts):
    list(from_folder(tmp_path).read(0))


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
  (tmp_path / "a.txt").write_bytes(b"caf\xe9 noir")
  with refusal("a.txt", "utf-8", "repair the file"):
    list(from_folder(tmp_path).read(0))


def test_a_truncated_file_is_refused(tmp_path):
  packed = gzip.compress(lines(*map(str, range(10_000))).encode())
  for cut in (len(packed) // 2, len(packed) - 1, 5):
    (tmp_path / "a.jsonl.gz").write_bytes(packed[:cut])
    with refusal("a.jsonl.gz", "repair the file"):
      list(from_folder(tmp_path).read(0))


def test_a_damaged_packing_is_refused(tmp_path):
  packed = bytearray(gzip.compress(b"text " * 1000))
  packed[20:30] = bytes(10)
  (tmp_path / "a.txt.gz").write_bytes(packed)
  with refusal("a.txt.gz", "repair the file"):
    list(from_folder(tmp_path).read(0))


def test_a_folder_without_texts_is_refused(tmp_path):
  with refusal("source", "no folder", "nowhere"):
    from_folder(tmp_path / "nowhere")
  (tmp_path / "a.pdf").touch()
  with refusal(str(tmp_path), "no such file", ".txt, .md, .jsonl"):
    from_folder(tmp_path)
