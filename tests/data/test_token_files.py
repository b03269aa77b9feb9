import json
import time

import numpy as np
import pytest
import tiny_corpus
from one_line import refusal

from headjax.data.manifest import Manifest
from headjax.data.token_files import Corpus, open_corpus
from headjax.data.windows import shuffled

N_IDS = 261


@pytest.fixture(scope="module")
def made(tmp_path_factory):
  """A corpus of several shards, and all its training tokens."""
  folder = tmp_path_factory.mktemp("corpora") / "tiny"
  manifest = tiny_corpus.make(folder, tiny_corpus.documents(300))
  assert len(manifest.train) > 3
  shards = [np.fromfile(folder / f["file"], "<u2") for f in manifest.train]
  return folder, np.concatenate(shards)


@pytest.fixture
def copy(made, tmp_path):
  """A copy that a test may damage."""
  for file in made[0].iterdir():
    (tmp_path / file.name).write_bytes(file.read_bytes())
  return tmp_path


def opened(folder, sampling="replacement", d_vocab=N_IDS):
  return open_corpus(folder, sampling=sampling, d_vocab=d_vocab)


def change(folder, **fields):
  """Rewrites fields of a manifest."""
  path = folder / "manifest.json"
  path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize("length", [2, 9, 1500])
def test_once_gives_slices_across_shards(made, length):
  folder, tokens = made
  corpus = opened(folder, "once")
  n = (len(tokens) - 1) // (length - 1)
  rows = corpus.sequences(7, np.arange(n), length)
  assert rows.dtype == np.int32
  order = shuffled(n, 7)
  expected = [tokens[i * (length - 1) :][:length] for i in order]
  np.testing.assert_array_equal(rows, expected)
  np.testing.assert_array_equal(
    corpus.sequences(7, [n - 1, 0], length)[1], rows[0]
  )


def test_replacement_gives_slices(made):
  folder, tokens = made
  corpus = opened(folder)
  rows = corpus.sequences(7, np.arange(200), 60)
  windows = np.lib.stride_tricks.sliding_window_view(tokens, 60)
  known = {window.tobytes(): i for i, window in enumerate(windows)}
  found = [known[row.astype("<u2").tobytes()] for row in rows]
  assert len(set(found)) > 150
  again = corpus.sequences(7, np.array([150, 3]), 60)
  np.testing.assert_array_equal(again, rows[[150, 3]])
  assert (corpus.sequences(8, np.arange(200), 60) != rows).any()


def test_the_last_start_reads_to_the_last_token(made):
  folder, tokens = made
  row = opened(folder).sequences(0, np.array([0]), len(tokens))
  np.testing.assert_array_equal(row[0], tokens)


def test_validation_is_read_from_its_start(made):
  folder, _ = made
  tokens = np.fromfile(folder / "validation.bin", "<u2")
  rows = opened(folder).validation(np.array([2, 0]), 11)
  np.testing.assert_array_equal(rows[0], tokens[20:31])
  np.testing.assert_array_equal(rows[1], tokens[:11])


def test_a_corpus_knows_its_vocabulary(made):
  folder, _ = made
  corpus = opened(folder, d_vocab=N_IDS + 3)
  assert (corpus.name, corpus.d_vocab) == ("tiny", N_IDS)
  assert corpus.tokenizer.decode([258, 259]) == " theor"
  assert corpus.tokenizer.digest == corpus.manifest.tokenizer["digest"]


def test_wide_ids_take_four_bytes(tmp_path):
  ids = np.array([0, 65_536, 7, 70_000, 5], "<u4")
  ids.tofile(tmp_path / "train-00000.bin")
  ids.tofile(tmp_path / "validation.bin")
  files = [
    {"file": name, "tokens": 5, "sha256": ""}
    for name in ("train-00000.bin", "validation.bin")
  ]
  manifest = Manifest(
    name="wide",
    source={},
    licences=[],
    tokenizer={},
    d_vocab=70_001,
    separator=0,
    seed=0,
    share=50,
    documents={},
    train=files[:1],
    validation=files[1],
    tokenizer_sha256="",
    packages={},
  )
  corpus = Corpus(tmp_path, manifest, "once")
  assert corpus.sequences(0, [0], 5).tolist() == [ids.tolist()]
  assert corpus.validation([0, 1], 3).tolist() == [[0, 65536, 7], [7, 70000, 5]]


def test_equal_content_has_an_equal_digest(made, copy):
  digest = opened(made[0]).digest
  change(copy, name="other", packages={}, seed=5)
  assert opened(copy).digest == digest
  manifest = opened(copy).manifest
  change(copy, d_vocab=manifest.d_vocab - 1)
  assert opened(copy).digest != digest


@pytest.mark.parametrize(
  "name", ["train-00001.bin", "validation.bin", "tokenizer.json"]
)
def test_an_altered_file_is_refused(copy, name):
  content = bytearray((copy / name).read_bytes())
  content[len(content) // 2] ^= 1
  (copy / name).write_bytes(content)
  with refusal(name, "sha256", "copy or prepare"):
    opened(copy)


@pytest.mark.parametrize("name", ["train-00000.bin", "validation.bin"])
def test_a_truncated_file_is_refused(copy, name):
  content = (copy / name).read_bytes()
  (copy / name).write_bytes(content[:-2])
  with refusal(name, f"{len(content) - 2:,} bytes", f"{len(content):,} bytes"):
    opened(copy)


@pytest.mark.parametrize(
  "name", ["train-00002.bin", "validation.bin", "tokenizer.json"]
)
def test_a_missing_file_is_refused(copy, name):
  (copy / name).unlink()
  with refusal(name, "no such file"):
    opened(copy)


def test_an_empty_corpus_is_refused(copy):
  change(copy, train=[])
  with refusal("no tokens to train on"):
    opened(copy)


def test_a_model_with_too_few_ids_is_refused(made):
  with refusal("d_vocab", "260 ids in the model", "at least 261"):
    opened(made[0], d_vocab=N_IDS - 1)


def test_an_unknown_sampling_is_refused(made):
  with refusal("sampling", "shuffled", "once, replacement"):
    opened(made[0], "shuffled")


def test_a_run_that_is_too_long_is_refused_before_it_begins(made):
  folder, tokens = made
  n = (len(tokens) - 1) // 8
  corpus = opened(folder, "once")
  corpus.check(9, n, 5)
  opened(folder).check(9, 10 * n, 0)
  with refusal("read once", f"{n + 1:,} sequences", f"at most {n:,}"):
    corpus.check(9, n + 1, 5)
  with refusal("read once", f"at most {n:,}"):
    corpus.sequences(0, [n], 9)
  with refusal("10,000 sequences"):
    corpus.check(9, 1, 10_000)
  with refusal(f"{len(tokens):,} tokens", "shorter context"):
    opened(folder).check(len(tokens) + 1, 1, 0)


def test_a_batch_takes_less_than_a_millisecond(made):
  corpus = opened(made[0])
  seconds = []
  for step in range(50):
    began = time.perf_counter()
    corpus.sequences(0, step * 32 + np.arange(32), 513)
    seconds.append(time.perf_counter() - began)
  assert min(seconds) < 1e-3
