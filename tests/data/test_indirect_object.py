"""Do the marks stand at the names, with a tokenizer of single words?"""

import numpy as np
import pytest
import tokenizers as backends
from one_line import refusal

from headjax.data.indirect_object import (
  NAMES,
  OBJECTS,
  PLACES,
  indirect_objects,
)
from headjax.models.tokenizers import Tokenizer

FRAME = "When and went to the gave a".split()


def word_tokenizer(names):
  """Every word is a token with the space before it."""
  words = [f" {w}" for w in (*names, *PLACES, *OBJECTS, *FRAME[1:])]
  vocabulary = {w: i for i, w in enumerate(["?", "When", ",", *words])}
  backend = backends.Tokenizer(
    backends.models.WordLevel(vocabulary, unk_token="?")
  )
  backend.pre_tokenizer = backends.pre_tokenizers.Split(
    backends.Regex(r" ?\w+|,"), "isolated"
  )
  return Tokenizer(backend, "words"), vocabulary


@pytest.fixture(scope="module")
def words():
  return word_tokenizer(NAMES)


def test_marks_are_the_names_in_the_text(words):
  tokenizer, _ = words
  probe = indirect_objects(tokenizer, 40)
  text = lambda ids: [tokenizer.decode([i]).strip() for i in ids]  # noqa: E731
  for i in range(40):
    row = text(probe.tokens[i, : probe.query[i] + 1])
    [mover], subject = (
      probe.targets[k][i].tolist() for k in ("name_mover", "s_inhibition")
    )
    [answer, foil] = text([probe.answer[i], probe.foil[i]])
    assert row[mover] == answer and row.count(answer) == 1
    assert subject == [k for k, word in enumerate(row) if word == foil]
    assert (mover, subject[0]) == ((1, 3) if i % 2 == 0 else (3, 1))
    assert row[-1] == "to" and row[probe.targets["duplicate"][i, 0]] == "to"
    assert row[probe.targets["induction"][i, 0]] == "the"
    assert row[probe.targets["previous"][i, 0]] in OBJECTS
  assert len(np.unique(probe.tokens, axis=0)) > 35
  assert probe.chance == 1 / len(NAMES)


def test_names_of_several_tokens_are_not_used(words):
  tokenizer, vocabulary = word_tokenizer(NAMES[:12])
  probe = indirect_objects(tokenizer, 60)
  known = {vocabulary[f" {name}"] for name in NAMES[:12]}
  assert set(probe.answer) | set(probe.foil) <= known
  few, _ = word_tokenizer(NAMES[:9])
  with refusal("tokenizer: got 9 names that are one token; expected at least"):
    indirect_objects(few)
