"""Is toy text a pure function of seed and index, and no help to n-grams?"""

import hashlib
import inspect

import numpy as np
import pytest

from headjax.data import load_task, toy_frames
from headjax.data.token_files import Corpus
from headjax.data.toy import Toy

DIGEST = "66a316b11de52bf6366f5e61d534c460550c28f806297da3cba71344e6a4f7e6"
FIRST_20 = "bb5f48dcaff1361f647607fb47b61daea37e29798497183b1a6a534a93a02108"


@pytest.fixture(scope="module")
def corpus():
  return Toy()


def branch(key, number):
  """The state of SplitMix64 after so many steps, mixed; in plain integers."""
  z = (key + 0x9E3779B97F4A7C15 * (number + 1)) % 2**64
  return mixed(z)


def mixed(z):
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
  z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
  return z ^ z >> 31


def plain(toy, frames, stream, index, length):
  """A sequence, line after line, until there is enough."""
  ids, number = [], 0
  sequence = branch(mixed(stream % 2**64), index)
  while len(ids) <= length:
    line = branch(sequence, number)
    frame = sum(int(bound) <= line >> 32 for bound in frames.bounds)
    n = frames.lengths[frame]
    draws = [[branch(line, slot) >> 1 for slot in range(n)]]
    ids += frames.fill(np.array([frame]), np.array(draws))[0, :n].tolist()
    number += 1
  start = 1 if toy.decode(ids[:1]) == "\n" else 0
  return ids[start : start + length]


def test_sequences_are_those_of_a_plain_loop(corpus, toy):
  frames = toy_frames.frames(toy)
  indices = np.array([0, 1, 2, 10**6, 2**40 + 5])
  for seed in (0, 1, 42, -1, 2**70):
    stream = 2 * seed + 1
    expected = [plain(toy, frames, stream, i, 65) for i in indices.tolist()]
    np.testing.assert_array_equal(corpus.sequences(seed, indices, 65), expected)
  expected = [plain(toy, frames, 0, i, 65) for i in indices.tolist()]
  np.testing.assert_array_equal(corpus.validation(indices, 65), expected)


def test_the_text_is_what_it_always_was(corpus):
  """A change here makes another corpus: old runs cannot be continued."""
  ids = corpus.sequences(0, np.arange(20), 128)
  assert (ids.shape, ids.dtype) == ((20, 128), np.int32)
  assert hashlib.sha256(ids.astype("<i4").tobytes()).hexdigest() == FIRST_20
  assert corpus.digest == DIGEST


def test_a_sequence_depends_on_no_other(corpus):
  indices = np.array([7, 3, 3, 0, 11])
  together = corpus.sequences(5, indices, 100)
  for i, row in zip(indices, together, strict=True):
    np.testing.assert_array_equal(
      corpus.sequences(5, np.array([i]), 100)[0], row
    )


@pytest.mark.parametrize("length", [1, 2, 6, 7, 50, 128, 129])
def test_a_shorter_sequence_is_the_start_of_a_longer_one(corpus, length):
  whole = corpus.sequences(5, np.arange(40), 300)
  part = corpus.sequences(5, np.arange(40), length)
  np.testing.assert_array_equal(part, whole[:, :length])


def test_no_sequences_are_no_rows(corpus):
  assert corpus.sequences(0, np.arange(0), 129).shape == (0, 129)


def test_seeds_indices_and_validation_share_no_sequence(corpus):
  rows = [corpus.sequences(s, np.arange(300), 128) for s in (-2, -1, 0, 1, 2)]
  rows.append(corpus.validation(np.arange(300), 128))
  assert len(np.unique(np.concatenate(rows), axis=0)) == 1800


def test_a_sequence_begins_with_a_line(corpus, toy):
  first = corpus.sequences(0, np.arange(2000), 2)
  ends = first[:, 0] == toy.bos
  assert 0.2 < ends.mean() < 0.3
  starts = np.where(ends, first[:, 1], first[:, 0])
  assert not any(
    toy.decode([i]).startswith(("\n", " ")) for i in np.unique(starts)
  )


@pytest.mark.parametrize("task", ["sva", "quote", "plural"])
@pytest.mark.parametrize("split", ["discovery", "evaluation"])
def test_a_few_words_before_the_answer_do_not_tell_it(corpus, task, split):
  """N-grams with back-off, counted in 640,000 tokens."""
  text = corpus.sequences(0, np.arange(5000), 128)
  pairs = load_task(task, corpus.tokenizer, split=split)
  right = np.full(len(pairs), 0.5)
  for n in (2, 3, 4):
    windows = np.lib.stride_tricks.sliding_window_view(text, n, 1)
    found = codes(windows.reshape(-1, n))
    context = pairs.clean[:, 1 - n :]
    answer, foil = (
      count(found, codes(np.column_stack([context, last])))
      for last in (pairs.answer, pairs.foil)
    )
    right = np.where(answer == foil, right, answer > foil)
    assert 0.4 < right.mean() < 0.6
    if n == 2:
      assert answer.sum() > 200 and foil.sum() > 200
      assert 0.8 < answer.sum() / foil.sum() < 1.25


def codes(rows):
  return rows.astype(np.int64) @ 512 ** np.arange(rows.shape[1])


def count(found, keys):
  values, counts = np.unique(found, return_counts=True)
  place = np.minimum(np.searchsorted(values, keys), len(values) - 1)
  return np.where(values[place] == keys, counts[place], 0)


def test_it_is_used_like_a_corpus_of_files():
  for name in ("sequences", "validation", "check"):
    ours, theirs = (
      list(inspect.signature(getattr(kind, name)).parameters)
      for kind in (Toy, Corpus)
    )
    assert ours == theirs
  for name in ("name", "digest", "d_vocab", "tokenizer"):
    assert hasattr(Toy(), name)


def test_there_is_always_enough(corpus):
  corpus.check(129, 10**12, 10**6)
  with pytest.raises(ValueError, match="length: got 1; expected at least 2"):
    corpus.check(1, 10, 10)
