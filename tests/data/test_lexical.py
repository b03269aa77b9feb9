"""Are word pairs what they are called, and is the reference without them?"""

import pytest
from one_line import refusal

from headjax.data.in_context import QUESTIONS, SPACED_WORDS, WORDS
from headjax.data.lexical import LISTS, choose_format, lexical_examples


@pytest.mark.parametrize("task", LISTS)
def test_lists_are_pairs_of_different_words(task):
  assert all(len(pair) == 2 for pair in LISTS[task])
  inputs = [a for a, _ in LISTS[task]]
  assert len(set(inputs)) == len(inputs) > 60
  if task == "antonym":
    assert all(a != b and a.islower() and b.islower() for a, b in LISTS[task])
  else:
    labels = [b for _, b in LISTS[task]]
    assert len(set(labels)) == len(labels)


def test_examples_show_pairs_and_references_do_not():
  pairs = LISTS["antonym"]
  clean, reference = lexical_examples("antonym", pairs, 50, "x")
  for own, other in zip(clean, reference, strict=True):
    assert set(own.demonstrations) | {(own.query, own.answer)} <= set(pairs)
    words = [word for pair in own.demonstrations for word in pair]
    assert len({*words, own.query, own.answer}) == 10
    assert own.foil == own.demonstrations[0][1] == other.foil
    assert (other.query, other.answer) == (own.query, own.answer)
    inputs, labels = zip(*other.demonstrations, strict=True)
    assert inputs == tuple(a for a, _ in own.demonstrations)
    assert sorted(labels) == sorted(b for _, b in own.demonstrations)
    assert not set(other.demonstrations) & set(own.demonstrations)
  assert len(set(clean)) == 50
  assert lexical_examples("antonym", pairs, 50, "x")[0] == clean
  assert lexical_examples("antonym", pairs, 50, "y")[0] != clean


def test_the_format_is_the_first_that_leaves_enough_words(gpt2_tokenizer):
  form, pairs = choose_format("antonym", gpt2_tokenizer, (WORDS, SPACED_WORDS))
  assert form == WORDS and len(pairs) > 60
  for _, label in pairs:
    assert gpt2_tokenizer.single(label) is not None
  form, pairs = choose_format(
    "country-capital", gpt2_tokenizer, (WORDS, SPACED_WORDS)
  )
  assert form == SPACED_WORDS and ("France", "Paris") in pairs
  for _, label in pairs:
    assert gpt2_tokenizer.single(" " + label) is not None


def test_a_tokenizer_without_these_words_is_refused(toy, gpt2_tokenizer):
  with refusal(
    "task antonym: got at most", "tokenizer toy writes as one token"
  ):
    choose_format("antonym", toy, (WORDS, QUESTIONS), least=50)
  with refusal("expected at least 99"):
    choose_format("country-capital", gpt2_tokenizer, (WORDS,), least=99)


def test_impossible_prompts_are_refused():
  pairs = [("a", "b"), ("b", "c"), ("c", "a")]
  with refusal("task odd: got no 3 pairs without a common word"):
    lexical_examples("odd", pairs, 1, shots=2)
  with refusal("shots: got 3; expected 2 to 2"):
    lexical_examples("odd", pairs, 1, shots=3)
