import sys
import threading
import time

import numpy as np
import pytest
import tiny_corpus
from one_line import refusal

from headjax.data.encoding import in_order, open_encoder

CASES = [
  "Hello world",
  "a<|endoftext|>b",
  " \n\n x  \t\r\n",
  "don't I'LL we've 'S",
  "１２３ ½ Ⅷ ٣",
  "\u200b\u00a0\u3000x\u2028y",
  "é e\u0301 ß",
  "👩‍👩‍👧",
  "日本語テキスト",
  "\x00\x01",
  "",
  " ",
  "\n",
  "x" * 3000,
  " " * 3000,
]


@pytest.fixture(scope="module")
def gpt2():
  pytest.importorskip("tiktoken")
  return open_encoder("gpt2")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
  folder = tmp_path_factory.mktemp("vocabulary")
  return open_encoder(str(tiny_corpus.tokenizer_file(folder)))


@pytest.mark.parametrize("text", CASES)
def test_tiktoken_agrees_with_tokenizers(gpt2, text):
  ids, lengths = gpt2.encode([text])
  assert lengths.tolist() == [len(ids)]
  if tiny_corpus.SEPARATOR in text:
    assert gpt2.separator not in ids
    assert gpt2.tokenizer.decode(ids) == text
  else:
    assert ids.tolist() == gpt2.tokenizer.encode(text)


def test_tiktoken_agrees_with_tokenizers_on_the_characters_of_unicode(gpt2):
  """Alphabets and signs, and every ninth of the others: in words, and twice."""
  codes = [
    *range(0x3100),
    *range(0x3100, 0xD800, 9),
    *range(0xE000, 0x20000, 9),
  ]
  texts = [
    "".join(f"a{chr(c)}1 {chr(c)}b  {chr(c)}.{chr(c) * 2} \n" for c in block)
    for block in np.array_split(codes, 50)
  ]
  expected = gpt2.tokenizer.backend.encode_batch(texts)
  ids, _ = gpt2.encode(texts)
  assert ids.tolist() == [i for text in expected for i in text.ids]


def test_tiktoken_keeps_documents_apart(gpt2):
  """Together they give the ids that each gives alone."""
  texts = [*CASES, *tiny_corpus.documents(30), *CASES[::-1]]
  alone = [gpt2.encode([text])[0].tolist() for text in texts]
  ids, lengths = gpt2.encode(texts)
  assert lengths.tolist() == [len(row) for row in alone]
  assert ids.tolist() == [i for row in alone for i in row]
  joined, first = gpt2.joined(texts)
  assert joined.tolist() == [i for row in alone for i in [*row, 50_256]]
  assert first.tolist() == [
    sum(len(row) + 1 for row in alone[:n]) for n in range(len(alone))
  ]


def test_other_vocabularies_agree_with_their_tokenizer(tiny):
  texts = tiny_corpus.documents(40)
  expected = tiny_corpus.encoded(texts)
  ids, first = tiny.joined(texts)
  assert ids.dtype == "<u2"
  assert ids.tolist() == [i for row in expected for i in row]
  assert first.tolist() == [
    sum(map(len, expected[:n])) for n in range(len(texts))
  ]


def test_nothing_is_encoded_to_nothing(tiny):
  ids, first = tiny.joined([])
  assert (len(ids), len(first), ids.dtype) == (0, 0, np.dtype("<u2"))


def test_the_tokenizer_itself_is_not_changed(tiny):
  assert tiny.tokenizer.encode("a<|endoftext|>").count(tiny.separator) == 1


def test_another_separator_can_be_named(tmp_path):
  path = str(tiny_corpus.tokenizer_file(tmp_path))
  assert open_encoder(path, "or").separator == 259
  with refusal(f"tokenizer {path}", "no token '<end>'", "--separator"):
    open_encoder(path, "<end>")


def test_a_missing_tokenizer_is_refused(tmp_path):
  with refusal("tokenizer", "nowhere.json"):
    open_encoder(str(tmp_path / "nowhere.json"))


def test_without_tiktoken_its_installation_is_named(monkeypatch):
  monkeypatch.setitem(sys.modules, "tiktoken", None)
  with refusal("tokenizer gpt2", "no installed tiktoken", "pip install"):
    open_encoder("gpt2")


def test_results_come_in_order_and_not_too_far_ahead():
  started, taken = [], []

  def items():
    for i in range(40):
      taken.append(i)
      yield i

  def work(i):
    started.append(threading.current_thread().name)
    time.sleep(0.001 * (i % 3))
    return i * i

  for i, square in enumerate(in_order(work, items(), workers=3)):
    assert square == i * i
    assert len(taken) <= i + 8
  assert i == 39
  assert len(set(started)) == 3


def test_an_error_in_the_work_is_passed_on():
  def work(i):
    if i == 5:
      raise ValueError("item 5")
    return i

  found = []
  with pytest.raises(ValueError, match="item 5"):
    for result in in_order(work, range(100), workers=2):
      found.append(result)
  assert found == list(range(5))


def test_work_that_nobody_wants_any_more_is_not_done():
  done = []
  results = in_order(done.append, range(1000), workers=2)
  next(results)
  results.close()
  assert len(done) <= 6
