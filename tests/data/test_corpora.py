import dataclasses
import functools
import hashlib
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest
import tiny_corpus
from one_line import refusal

from headjax.data.manifest import read_manifest
from headjax.data.token_files import open_corpus

TEXTS = tiny_corpus.documents(300)
ROOT = pathlib.Path(__file__).parents[2]


def slow(texts, seed=1729):
  """Both files by a plain loop over the documents, and how many of each."""
  rows = {"train": [], "validation": []}
  for text, ids in zip(texts, tiny_corpus.encoded(texts), strict=True):
    if text.strip():
      first = hashlib.sha256(f"{seed} {text}".encode()).hexdigest()[:16]
      rows["validation" if int(first, 16) % 50 == 0 else "train"].append(ids)
  return rows


def joined(rows):
  return [i for row in rows for i in row]


def tokens(folder, split):
  files = sorted(folder.glob(f"{split}*.bin"))
  return np.concatenate([np.fromfile(file, "<u2") for file in files]).tolist()


def content(folder):
  return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_the_files_hold_the_ids_of_a_plain_loop(tmp_path):
  manifest = tiny_corpus.make(tmp_path / "a", TEXTS)
  rows = slow(TEXTS)
  assert tokens(tmp_path / "a", "train") == joined(rows["train"])
  assert tokens(tmp_path / "a", "validation") == joined(rows["validation"])
  counts = {split: len(found) for split, found in rows.items()}
  assert manifest.documents == counts
  assert counts["validation"] >= 3 and sum(counts.values()) == 299
  assert manifest == read_manifest(tmp_path / "a")
  names = {file.name for file in (tmp_path / "a").iterdir()}
  assert names == {file["file"] for file in manifest.train} | {
    "manifest.json",
    "tokenizer.json",
    "validation.bin",
  }
  assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "vocabulary"]


def test_the_record_says_where_it_comes_from(tmp_path):
  manifest = tiny_corpus.make(tmp_path / "a", TEXTS, seed=3)
  assert manifest.source["name"] == "tiny"
  assert manifest.licences == ["made up"]
  assert (manifest.seed, manifest.share) == (3, 50)
  assert (manifest.d_vocab, manifest.separator) == (261, 260)
  assert manifest.packages["numpy"] == np.__version__
  assert "tokenizers" in manifest.packages


@pytest.mark.parametrize("n_train", [2, 699, 2500, 5000])
@pytest.mark.parametrize("n_validation", [0, 1, 60])
def test_numbers_of_tokens_are_kept_exactly(tmp_path, n_train, n_validation):
  manifest = tiny_corpus.make(
    tmp_path / "a",
    TEXTS,
    train_tokens=n_train,
    validation_tokens=n_validation,
  )
  rows = slow(TEXTS)
  expected = {"train": n_train, "validation": n_validation}
  for split, n in expected.items():
    assert tokens(tmp_path / "a", split) == joined(rows[split])[:n]
    ends = np.cumsum([len(row) for row in rows[split]])
    assert manifest.documents[split] == np.sum(ends < n) + (n > 0)


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("n_train", [None, 3000])
def test_workers_do_not_change_a_byte(tmp_path, workers, n_train):
  for name, n in (("a", 2), ("b", workers)):
    tiny_corpus.make(
      tmp_path / name / "same", TEXTS, workers=n, train_tokens=n_train
    )
  assert content(tmp_path / "a" / "same") == content(tmp_path / "b" / "same")


KILLED = """
import os, pathlib, signal, sys
sys.path[:0] = ["tests", "."]
import tiny_corpus

class Deadly(list):
  def __getitem__(self, part):
    for n, text in enumerate(list.__getitem__(self, part), part.start):
      if n == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
      yield text

texts = Deadly(tiny_corpus.documents(300))
tiny_corpus.make(pathlib.Path(sys.argv[1]), texts)
"""


def test_a_killed_preparation_goes_on_and_ends_with_the_same_bytes(tmp_path):
  tiny_corpus.make(tmp_path / "a" / "same", TEXTS)
  folder = tmp_path / "b" / "same"
  partial = folder.with_name("same.partial")
  done = subprocess.run([sys.executable, "-c", KILLED, folder, "180"], cwd=ROOT)
  assert done.returncode == -signal.SIGKILL
  assert not folder.exists()
  assert len(list(partial.glob("train-*.bin"))) > 3
  for name in (".progress.7.part.json", ".manifest.7.part.json"):
    (partial / name).write_text("half of a f")
  tiny_corpus.make(folder, TEXTS)
  assert content(folder) == content(tmp_path / "a" / "same")
  assert not partial.exists()


class Broken(Exception):
  """A document that cannot be read."""


@pytest.fixture
def reads(monkeypatch):
  """From which documents on the source was read; `broken_at` stops it."""
  whole = tiny_corpus.source

  class Reads(list):
    broken_at = None

  starts = Reads()

  def read(texts, start):
    starts.append(start)
    for n, text in enumerate(texts[start:], start):
      if n == starts.broken_at:
        raise Broken
      yield text

  def source(texts):
    return dataclasses.replace(
      whole(texts), read=functools.partial(read, texts)
    )

  monkeypatch.setattr(tiny_corpus, "source", source)
  return starts


@pytest.mark.parametrize("n", [40, 100, 201, 299])
@pytest.mark.parametrize("limits", [{}, {"train_tokens": 1500}])
def test_an_interrupted_preparation_reads_only_what_is_missing(
  tmp_path, reads, n, limits
):
  tiny_corpus.make(tmp_path / "a" / "same", TEXTS, **limits)
  folder = tmp_path / "b" / "same"
  reads.broken_at = n
  with pytest.raises(Broken):
    tiny_corpus.make(folder, TEXTS, **limits)
  reads.broken_at = None
  tiny_corpus.make(folder, TEXTS, **limits)
  assert content(folder) == content(tmp_path / "a" / "same")
  assert reads[:2] == [0, 0]
  # Without a limit the last shards are those of some 40 documents.
  assert reads[2] <= n and (limits or reads[2] > n - 70)


def test_a_preparation_may_be_interrupted_many_times(tmp_path, reads):
  tiny_corpus.make(tmp_path / "a" / "same", TEXTS)
  folder = tmp_path / "b" / "same"
  for reads.broken_at in (90, 91, 92, 170, 250, 299):
    with pytest.raises(Broken):
      tiny_corpus.make(folder, TEXTS)
  reads.broken_at = None
  tiny_corpus.make(folder, TEXTS)
  assert content(folder) == content(tmp_path / "a" / "same")


def test_a_full_corpus_reads_no_further(tmp_path, reads):
  reads.broken_at = 100
  tiny_corpus.make(tmp_path / "a", TEXTS, train_tokens=500, validation_tokens=0)


def test_an_interruption_before_the_first_shard_leaves_nothing(tmp_path, reads):
  reads.broken_at = 3
  with pytest.raises(Broken):
    tiny_corpus.make(tmp_path / "a", TEXTS)
  assert [path.name for path in tmp_path.iterdir()] == ["vocabulary"]


def test_a_partial_folder_of_another_command_is_refused(tmp_path, reads):
  reads.broken_at = 200
  with pytest.raises(Broken):
    tiny_corpus.make(tmp_path / "a", TEXTS)
  reads.broken_at = None
  before = content(tmp_path / "a.partial")
  for texts, options in (
    (TEXTS, {"seed": 2}),
    (TEXTS, {"train_tokens": 1000}),
    (TEXTS, {"validation_tokens": 10}),
    (TEXTS, {"shard_tokens": 800}),
    (TEXTS[1:], {}),
  ):
    with refusal("a.partial", "of another command", "delete it"):
      tiny_corpus.make(tmp_path / "a", texts, **options)
  assert content(tmp_path / "a.partial") == before


def test_a_shard_that_was_changed_meanwhile_is_found(tmp_path, reads):
  reads.broken_at = 200
  with pytest.raises(Broken):
    tiny_corpus.make(tmp_path / "a", TEXTS)
  reads.broken_at = None
  shard = tmp_path / "a.partial" / "train-00000.bin"
  shard.write_bytes(bytes(len(shard.read_bytes())))
  with refusal("train-00000.bin", "sha256"):
    tiny_corpus.make(tmp_path / "a", TEXTS)
  assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("make", [pathlib.Path.mkdir, pathlib.Path.touch])
def test_an_output_that_exists_is_refused(tmp_path, make):
  make(tmp_path / "a")
  with refusal("output folder", "does not exist yet"):
    tiny_corpus.make(tmp_path / "a", TEXTS)
  assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "vocabulary"]


def test_corpora_that_share_validation_share_no_document_with_it(tmp_path):
  """Not even when their sources overlap and stand in another order."""
  tiny_corpus.make(tmp_path / "R", TEXTS, train_tokens=3000)
  others = TEXTS[::-1] + tiny_corpus.documents(100, seed=1)
  manifest = tiny_corpus.make(tmp_path / "S", others, validation=tmp_path / "R")
  assert tokens(tmp_path / "S", "validation") == tokens(
    tmp_path / "R", "validation"
  )
  held_out = {tuple(row) for row in slow(TEXTS)["validation"]}
  train = slow(others)["train"]
  assert tokens(tmp_path / "S", "train") == joined(train)
  assert held_out and not held_out & {tuple(row) for row in train}
  assert manifest.documents["validation"] is None
  corpus = open_corpus(tmp_path / "S", sampling="once", d_vocab=261)
  corpus.check(9, 100, 2)


@pytest.mark.parametrize(
  ("options", "parts"),
  [
    ({"seed": 5}, ["seed", "got 5", "1729"]),
    ({"separator": "or"}, ["separator", "got 259", "260"]),
    ({"validation_tokens": 5}, ["validation tokens", "leave one out"]),
  ],
)
def test_a_validation_file_that_does_not_fit_is_refused(
  tmp_path, options, parts
):
  tiny_corpus.make(tmp_path / "R", TEXTS)
  with refusal(*parts):
    tiny_corpus.make(
      tmp_path / "S", TEXTS, validation=tmp_path / "R", **options
    )
  assert not list(tmp_path.glob("S*"))


def test_a_damaged_validation_file_is_not_shared(tmp_path):
  tiny_corpus.make(tmp_path / "R", TEXTS)
  path = tmp_path / "R" / "validation.bin"
  path.write_bytes(bytes(len(path.read_bytes())))
  with refusal("validation.bin", "sha256"):
    tiny_corpus.make(tmp_path / "S", TEXTS, validation=tmp_path / "R")


@pytest.mark.parametrize(
  ("texts", "options", "parts"),
  [
    (TEXTS, {"train_tokens": 10**6}, ["train tokens of tiny", "1,000,000"]),
    (TEXTS, {"validation_tokens": 900}, ["validation tokens", "900"]),
    (TEXTS[:3], {}, ["validation tokens", "got 0", "at least 1"]),
    ([" "], {}, ["train tokens", "got 0 in 1 documents"]),
    ([], {}, ["train tokens", "got 0 in 0 documents"]),
    (TEXTS, {"train_tokens": 1}, ["train tokens", "got 1", "at least 2"]),
    (TEXTS, {"validation_tokens": -1}, ["validation tokens", "got -1"]),
    (TEXTS, {"workers": 0}, ["workers", "got 0", "at least 1"]),
  ],
)
def test_what_the_source_does_not_have_is_refused(
  tmp_path, texts, options, parts
):
  with refusal(*parts):
    tiny_corpus.make(tmp_path / "a", texts, **options)
  assert [path.name for path in tmp_path.iterdir()] == ["vocabulary"]
