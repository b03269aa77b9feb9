import hashlib

import numpy as np
import pytest
import tiny_corpus
from tqdm.auto import tqdm

from headjax.data.encoding import open_encoder
from headjax.data.filling import Filling, is_for_validation
from headjax.data.shards import PartialFolder

TEXTS = tiny_corpus.documents(300)


@pytest.fixture
def fill(tmp_path):
  """Fills a folder; returns it and how many documents were read and encoded."""
  encoder = open_encoder(str(tiny_corpus.tokenizer_file(tmp_path / "v")))
  counts = {"read": 0, "encoded": 0}

  def read(start):
    for text in TEXTS[start:]:
      counts["read"] += 1
      yield text

  def encode(texts, encode=encoder.encode):
    counts["encoded"] += len(texts)
    return encode(texts)

  object.__setattr__(encoder, "encode", encode)
  source = tiny_corpus.source(TEXTS)
  object.__setattr__(source, "read", read)

  def run(train, validation):
    partial = PartialFolder(tmp_path / "a", {}, encoder.dtype)
    limits = {"train": train, "validation": validation}
    filling = Filling(partial, encoder, 1729, limits, 700)
    with tqdm(disable=True) as bar:
      filling.run(source, 1, 300, bar)
    partial.close()
    return partial, counts

  return run


def test_a_document_is_for_validation_by_its_hash():
  held_out = [n for n in range(500) if is_for_validation(f"text {n}", -2)]
  assert held_out == [
    n
    for n in range(500)
    if int(hashlib.sha256(f"-2 text {n}".encode()).hexdigest()[:16], 16) % 50
    == 0
  ]


def test_a_fiftieth_of_the_documents_is_for_validation():
  texts = [f"document {i}" for i in range(20_000)]
  held_out = [is_for_validation(text, 0) for text in texts]
  assert abs(np.mean(held_out) - 1 / 50) < 4 * (0.02 * 0.98 / 20_000) ** 0.5
  other = [is_for_validation(text, 1) for text in texts]
  assert np.mean(np.logical_and(held_out, other)) < 2e-3


def test_documents_are_read_only_as_far_as_needed(fill):
  partial, counts = fill(1000, 0)
  assert partial.progress.train_tokens == 1000
  assert partial.progress.documents < 45
  assert counts["read"] < partial.progress.documents + 25


def test_documents_that_nobody_wants_are_not_encoded(fill):
  """The file for training is full long before the other one is."""
  partial, counts = fill(1000, 10**9)
  assert counts["read"] == partial.progress.documents == 300
  assert counts["encoded"] < 80


def test_shards_end_with_a_batch_of_documents(fill):
  partial, _ = fill(10**9, 0)
  rows = [
    len(row)
    for text, row in zip(TEXTS, tiny_corpus.encoded(TEXTS), strict=True)
    if text.strip() and not is_for_validation(text, 1729)
  ]
  ends = set(np.cumsum(rows).tolist())
  sizes = [shard["tokens"] for shard in partial.progress.shards]
  assert set(np.cumsum(sizes).tolist()) <= ends
  assert all(700 <= size < 1200 for size in sizes[:-1])
  assert partial.progress.train_documents == len(rows)
