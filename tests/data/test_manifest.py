import dataclasses
import json
import re

import pytest
from one_line import refusal

from headjax.data.manifest import Manifest, read_manifest

FILE = {"file": "train-00000.bin", "tokens": 30, "sha256": "ab"}
MANIFEST = Manifest(
  name="tiny",
  source={"name": "made up", "identity": "12"},
  licences=["none", "é"],
  tokenizer={"name": "gpt2", "digest": "cd", "bos": None},
  d_vocab=261,
  separator=260,
  seed=3,
  share=50,
  documents={"train": 9, "validation": None},
  train=[FILE, FILE | {"file": "train-00001.bin", "tokens": 12}],
  validation=FILE | {"file": "validation.bin"},
  tokenizer_sha256="ef",
  packages={"numpy": "2"},
)


@pytest.fixture
def change(tmp_path):
  """Writes the manifest with some fields changed, or left out for None."""
  MANIFEST.write(tmp_path)

  def write(**fields):
    path = tmp_path / "manifest.json"
    content = json.loads(path.read_text()) | fields
    content = {k: v for k, v in content.items() if v is not None}
    path.write_text(json.dumps(content))
    return tmp_path

  return write


def test_what_is_written_is_read(tmp_path):
  MANIFEST.write(tmp_path)
  assert read_manifest(tmp_path) == MANIFEST
  assert MANIFEST.train_tokens == 42
  text = (tmp_path / "manifest.json").read_text()
  assert re.search(r'"licences": \[\s+"none"', text)
  assert json.loads(text)["dtype"] == "<u2"


@pytest.mark.parametrize(
  ("d_vocab", "dtype"), [(1, "<u2"), (65_536, "<u2"), (65_537, "<u4")]
)
def test_ids_are_as_narrow_as_they_can_be(d_vocab, dtype):
  assert dataclasses.replace(MANIFEST, d_vocab=d_vocab).dtype == dtype


@pytest.mark.parametrize(
  ("field", "value", "counts"),
  [
    ("name", "other", False),
    ("seed", 4, False),
    ("packages", {}, False),
    ("d_vocab", 262, True),
    ("tokenizer", {"digest": "x"}, True),
    ("train", [FILE], True),
    ("train", MANIFEST.train[::-1], True),
    ("validation", FILE | {"sha256": "other"}, True),
  ],
)
def test_the_digest_is_that_of_what_training_reads(field, value, counts):
  other = dataclasses.replace(MANIFEST, **{field: value})
  assert (other.digest != MANIFEST.digest) == counts


def test_a_missing_corpus_is_refused(tmp_path):
  with refusal("nowhere", "no such folder", "prepare_corpus.py"):
    read_manifest(tmp_path / "nowhere")
  with refusal(str(tmp_path), "no manifest.json", "prepare_corpus.py"):
    read_manifest(tmp_path)


@pytest.mark.parametrize(
  ("fields", "parts"),
  [
    ({"version": 2}, ["version", "got 2", "expected 1"]),
    ({"version": None}, ["version", "got None"]),
    ({"d_vocab": "261"}, ["d_vocab", "'261'", "int"]),
    ({"d_vocab": True}, ["d_vocab", "True", "int"]),
    ({"seed": None}, ["seed", "got None"]),
    ({"d_vocab": 70_000}, ["dtype", "<u2", "<u4"]),
    ({"train": {}}, ["train", "list"]),
    ({"train": [3]}, ["file", "got None"]),
    ({"train": [{"file": "a.bin"}]}, ["tokens", "got None"]),
    ({"train": [FILE | {"file": "../a.bin"}]}, ["../a.bin", "name of a file"]),
    ({"validation": FILE | {"tokens": -1}}, ["-1", "number of tokens"]),
    ({"tokenizer": {"name": "x"}}, ["tokenizer", "digest"]),
  ],
)
def test_a_damaged_manifest_is_refused(change, fields, parts):
  folder = change(**fields)
  with refusal("manifest.json", *parts):
    read_manifest(folder)


@pytest.mark.parametrize("content", ["{", "[]", ""])
def test_a_manifest_that_is_no_json_object_is_refused(tmp_path, content):
  (tmp_path / "manifest.json").write_text(content)
  with refusal("manifest.json", "undamaged"):
    read_manifest(tmp_path)
