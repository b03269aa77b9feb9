"""Is a toy token a word with its space, and nothing else known?"""

import numpy as np
import pytest

from headjax.data.toy import Toy
from headjax.models import tokenizers


def pieces(tokenizer, text):
  return [tokenizer.decode([i]) for i in tokenizer.encode(text)]


def test_words_and_marks_take_the_space_before_them(toy):
  text = 'The farmers near the cat are old, and red?\nname = "red fox"\n\''
  assert pieces(toy, text) == [
    "The", " farmers", " near", " the", " cat", " are", " old", ",", " and",
    " red", "?", "\n", "name", " =", ' "', "red", " fox", '"', "\n", "'",
  ]  # fmt: skip


def test_the_end_of_a_text_is_one_token_that_begins_another(toy):
  assert pieces(toy, "red.<|endoftext|>The")[-2:] == ["<|endoftext|>", "The"]
  assert toy.bos == toy.single("<|endoftext|>") == 0


@pytest.mark.parametrize(
  "text", ["zebra", " zebra", "farmer", " The", " is are", "  is", "", "+", " "]
)
def test_what_is_unknown_is_no_single_token(toy, text):
  assert toy.single(text) is None


def test_answers_are_single_tokens(toy):
  answers = [" is", " are", "'", '"', " cat", " cats", " '", ' "']
  assert len({toy.single(answer) for answer in answers} - {None}) == 8


def test_generated_text_survives_a_round_trip(toy):
  corpus = Toy()
  for ids in corpus.sequences(3, np.arange(100), 128).tolist():
    text = corpus.tokenizer.decode(ids)
    assert toy.encode(text) == ids
    assert toy.decode(toy.encode(text)) == text
    assert "<unk>" not in text


def test_every_other_token_is_in_the_text(toy):
  counts = np.bincount(
    Toy().sequences(0, np.arange(1000), 128).ravel(), minlength=toy.d_vocab
  )
  assert np.flatnonzero(counts == 0).tolist() == [toy.encode("zebra")[0]]
  assert len(counts) == toy.d_vocab


def test_a_file_of_it_is_read_back(tmp_path, toy):
  path = tmp_path / "toy" / "tokenizer.json"
  path.parent.mkdir()
  toy.backend.save(str(path))
  read = tokenizers.from_file(path)
  assert (read.digest, read.name) == (toy.digest, "toy")
  text = "She saw one old zebra.\n"
  assert read.encode(text) == toy.encode(text)
  assert read.single(" zebra") is None
