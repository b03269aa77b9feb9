"""Is there a code to be retrieved, where it is said to be, and nowhere else?"""

import hashlib
import re

import numpy as np
import pytest
from one_line import refusal

from headjax.data.generated import GENERATED
from headjax.data.key_lines import FARTHEST, NEAREST, lines_of, put_keys
from headjax.data.keys import FEW, KeyedText, Keys, key_retrieval
from headjax.data.toy import Toy
from headjax.models.tokenizers import gpt2

LENGTH = 129
LINES = re.compile(
  r"\nThe secret code is( \w+)\.(.*?)\nWhat is the secret code\?( \w+)\n",
  re.DOTALL,
)
FIRST = "4e11fcef3cb4cc6da423a997b69a332663449fc7486df10cd141e3934c3aa49a"


@pytest.fixture(scope="module")
def corpus():
  return Keys()


def test_every_text_tells_a_code_and_asks_for_it(corpus):
  """Read as text, by another program."""
  rows = corpus.sequences(3, np.arange(300), LENGTH)
  used, gaps = set(), set()
  for row in rows:
    text = corpus.tokenizer.decode(row.tolist())
    # Only where the answer is the last token is its line not ended.
    [(code, between, answer)] = LINES.findall(text + "\n")
    assert code == answer
    used.add(code)
    gaps.add(len(corpus.tokenizer.encode(between)))
  assert len(used) == FEW
  assert min(gaps) == NEAREST and max(gaps) == FARTHEST


def test_without_the_lines_it_is_the_text(corpus):
  rows = corpus.sequences(3, np.arange(50), LENGTH)
  plain = Toy().sequences(3, np.arange(50), LENGTH)
  for row, text in zip(rows, plain, strict=True):
    kept = list(row)
    stop = max(
      i for i in range(LENGTH - 6)
      if kept[i : i + 7] == corpus.lines.asks.tolist()
    )  # fmt: skip
    del kept[stop : stop + 9]
    start = next(
      i for i in range(LENGTH)
      if kept[i : i + 5] == corpus.lines.tells.tolist()
    )  # fmt: skip
    del kept[start : start + 7]
    assert kept == text[: len(kept)].tolist()


def test_the_code_depends_on_nothing_else(corpus):
  """The same text with other codes: the first line alone tells which."""
  rows = Toy().sequences(0, np.arange(40), LENGTH)
  draws = np.random.default_rng(0).integers(0, 2**62, (40, 4))
  other = draws + np.array([0, 1, 0, 0])
  one, two = (put_keys(rows, d, corpus.lines, 1.0) for d in (draws, other))
  np.testing.assert_array_equal(one.query, two.query)
  row = np.arange(40)
  differ = one.tokens != two.tokens
  assert (differ.sum(1) == 2).all()
  assert differ[row, one.key].all() and differ[row, one.query + 1].all()


def test_a_share_of_the_sequences_gets_them():
  some = KeyedText(Toy(), share=0.1, name="some", tokenizer=Keys().tokenizer)
  rows = some.sequences(0, np.arange(2000), 70)
  plain = Toy().sequences(0, np.arange(2000), 70)
  changed = (rows != plain).any(axis=1)
  # Binomial, five standard deviations.
  assert abs(changed.sum() - 200) < 5 * np.sqrt(180)
  assert (changed == (rows == some.lines.asks[1]).any(axis=1)).all()


def test_sequences_depend_on_seed_and_index_alone(corpus):
  rows = corpus.sequences(0, np.arange(50), LENGTH)
  np.testing.assert_array_equal(
    corpus.sequences(0, np.array([7, 2**40]), LENGTH)[0], rows[7]
  )
  others = (
    corpus.sequences(1, np.arange(50), LENGTH),
    corpus.validation(np.arange(50), LENGTH),
  )
  for other in others:
    assert (other != rows).any(axis=1).all()
  content = hashlib.sha256(rows.astype("<i4").tobytes()).hexdigest()
  assert content == FIRST


def test_no_text_is_in_two_splits(corpus):
  """Training, validation and the probe's rows, up to what precedes a code."""
  splits = [
    corpus.sequences(0, np.arange(500), LENGTH),
    corpus.validation(np.arange(500), LENGTH),
    key_retrieval(corpus, 500, length=LENGTH).tokens,
  ]
  seen = [{row[:40].tobytes() for row in split} for split in splits]
  assert [len(split) for split in seen] == [500] * 3
  assert len(set.union(*seen)) == 1500


def test_a_probe_ends_with_the_question(corpus):
  probe = key_retrieval(corpus, 64, length=128)
  decode = corpus.tokenizer.decode
  found = []
  for i, query in enumerate(probe.query):
    text = decode(probe.tokens[i, : query + 1].tolist())
    assert text.endswith("\nWhat is the secret code?")
    [code] = re.findall(r"\nThe secret code is( \w+)\.", text)
    assert decode([probe.answer[i]]) == code
    [key] = probe.targets["induction"][i]
    assert probe.tokens[i, key] == probe.answer[i] and key < query
    assert decode([probe.tokens[i, key - 1]]) == " is"
    assert probe.targets["previous"][i] == [query - 1]
    found.append(query - key)
  assert (probe.targets["duplicate"] == -1).all()
  assert len(set(found)) > 15 and probe.chance == 1 / FEW


def test_it_is_a_corpus(corpus):
  assert GENERATED["keys"]().digest == corpus.digest
  assert corpus.digest != Toy().digest and corpus.d_vocab == Toy().d_vocab + 3
  ids = range(Toy().d_vocab)
  both = (corpus.tokenizer.decode, Toy().tokenizer.decode)
  assert [both[0]([i]) for i in ids] == [both[1]([i]) for i in ids]
  corpus.check(47, 10, 10)
  with refusal("length: got 46; expected at least 47 tokens"):
    corpus.check(46, 1, 1)
  with refusal("share: got 0"):
    KeyedText(Toy(), share=0, name="none")
  with refusal("tokenizer: got toy; expected one that writes"):
    KeyedText(Toy(), share=0.5, name="toy")


def test_gpt2s_vocabulary_has_all_codes_of_the_source():
  tokenizer = gpt2()
  lines = lines_of(tokenizer)
  assert len(lines.codes) == len(set(lines.codes.tolist())) == 512
  texts = [tokenizer.decode([i]) for i in lines.codes]
  assert all(re.fullmatch(" [a-z]+", text) for text in texts)
  assert " secret" not in texts and lines.width == 16
