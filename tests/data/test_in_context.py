"""Does every token know what it is from, and is every answer one token?"""

import collections
import dataclasses

import numpy as np
import pytest
from one_line import refusal

from headjax.data import in_context
from headjax.data.in_context import BUCKETS, LINES, QUESTIONS, WORDS, Example

RULE = Example(
  (("0,1", "A"), ("7,2", "B"), ("3,3", "B")), "5,6", "A", "B", "a rule"
)
WORD = Example((("hot", "cold"), ("big", "small")), "up", "down", "cold")


def made(tokenizer, example=RULE, form=LINES, **options):
  return in_context.encode(
    [example], [example], form, tokenizer, name="made", **options
  )


def by_bucket(tokenizer, prompts):
  """Bucket -> the texts of its tokens."""
  found = collections.defaultdict(list)
  for token, kind in zip(
    prompts.pairs.clean[0], prompts.buckets[0], strict=True
  ):
    found[BUCKETS[kind]].append(tokenizer.decode([token]))
  return found


def test_prompts_read_as_their_formats_say():
  assert in_context.text(RULE, LINES) == "0,1,A\n7,2,B\n3,3,B\n5,6,"
  assert in_context.text(WORD, WORDS) == "hot:cold big:small up:"
  assert in_context.text(WORD, QUESTIONS) == (
    "Q: hot\nA: cold\n\nQ: big\nA: small\n\nQ: up\nA:"
  )


def test_ids_are_those_of_the_text(gpt2_tokenizer):
  prompts = made(gpt2_tokenizer)
  ids = prompts.pairs.clean[0].tolist()
  assert ids[0] == gpt2_tokenizer.bos
  assert ids[1:] == gpt2_tokenizer.encode(in_context.text(RULE, LINES))
  assert gpt2_tokenizer.decode(prompts.pairs.answer) == "A"
  assert gpt2_tokenizer.decode(prompts.pairs.foil) == "B"
  assert prompts.pairs.group.tolist() == ["a rule"]
  without = made(gpt2_tokenizer, bos=False)
  assert without.pairs.clean[0].tolist() == ids[1:]
  np.testing.assert_array_equal(without.buckets, prompts.buckets[:, 1:])


def test_tokens_of_a_rule_prompt_know_their_buckets(gpt2_tokenizer):
  found = by_bucket(gpt2_tokenizer, made(gpt2_tokenizer))
  assert found == {
    "bos": ["<|endoftext|>"],
    "demo_input": list("017233"),
    "demo_label": list("ABB"),
    "query_input": list("56"),
    "format": [*",,\n,,\n,,\n,,"],
  }


def test_a_word_takes_its_space_along(gpt2_tokenizer):
  found = by_bucket(gpt2_tokenizer, made(gpt2_tokenizer, WORD, WORDS))
  assert found["demo_input"] == ["hot", " big"]
  assert found["demo_label"] == ["cold", "small"]
  assert found["query_input"] == [" up"]
  found = by_bucket(gpt2_tokenizer, made(gpt2_tokenizer, WORD, QUESTIONS))
  assert found["demo_label"] == [" cold", " small"]
  assert found["query_input"] == [" up"]
  assert "".join(found["format"]) == "Q:\nA:\n\nQ:\nA:\n\nQ:\nA:"


def test_padding_has_no_bucket(gpt2_tokenizer):
  prompts = in_context.encode(
    [WORD, dataclasses.replace(WORD, query="xylophonist")],
    [WORD, dataclasses.replace(WORD, query="xylophonist")],
    WORDS,
    gpt2_tokenizer,
    name="made",
  )
  padding = (
    np.arange(prompts.buckets.shape[1]) >= prompts.pairs.lengths[:, None]
  )
  assert padding.any()
  np.testing.assert_array_equal(prompts.buckets == -1, padding)


def test_a_shuffle_keeps_everything_but_the_order_of_labels(gpt2_tokenizer):
  examples = [RULE] * 40
  prompts = in_context.encode(
    examples, examples, LINES, gpt2_tokenizer, name="x"
  )
  orders = set()
  for seed in range(3):
    shuffled = in_context.with_shuffled_labels(prompts, gpt2_tokenizer, seed)
    again = in_context.with_shuffled_labels(prompts, gpt2_tokenizer, seed)
    assert shuffled.pairs.digest == again.pairs.digest
    np.testing.assert_array_equal(shuffled.pairs.reference, prompts.pairs.clean)
    np.testing.assert_array_equal(shuffled.pairs.answer, prompts.pairs.answer)
    np.testing.assert_array_equal(shuffled.buckets, prompts.buckets)
    changed = shuffled.pairs.clean != prompts.pairs.clean
    assert (prompts.buckets[changed] == BUCKETS.index("demo_label")).all()
    for example in shuffled.examples:
      inputs, labels = zip(*example.demonstrations, strict=True)
      assert inputs == ("0,1", "7,2", "3,3") and sorted(labels) == list("ABB")
      orders.add(labels)
  assert len(orders) == 3


def test_all_orders_of_labels_are_equally_likely():
  example = Example((("a", "1"), ("b", "2"), ("c", "3")), "d", "1", "2")
  counts = collections.Counter(
    tuple(x for _, x in in_context.shuffle_labels(example, i).demonstrations)
    for i in range(600)
  )
  assert len(counts) == 6 and min(counts.values()) > 60


@pytest.mark.parametrize(
  ("changes", "words"),
  [
    ({"answer": "antidisestablishment"}, "label 'antidisestablishment' after"),
    ({"foil": "A"}, "answer and foil 'A'; expected two different labels"),
    ({"foil": ""}, "label '' after"),
  ],
)
def test_answers_are_single_tokens(gpt2_tokenizer, changes, words):
  with refusal("task made: got", words):
    made(gpt2_tokenizer, dataclasses.replace(RULE, **changes))


def test_references_have_the_length_of_their_prompts(gpt2_tokenizer):
  other = dataclasses.replace(RULE, query="5")
  with refusal("task x: got 20 tokens in the reference of '0,1,A"):
    in_context.encode([RULE], [other], LINES, gpt2_tokenizer, name="x")


def test_unknown_tokens_are_no_answers(toy):
  with refusal("task made: got label 'A' after"):
    made(toy)
