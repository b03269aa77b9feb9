"""Does every step see the prompts that the paper describes?"""

import collections

import numpy as np
import pytest
from one_line import refusal

from headjax.data import toy_tokenizer
from headjax.data.in_context import BUCKETS
from headjax.models import tokenizers
from headjax.studies.writers.prompts import (
  TASKS,
  load_cell,
  load_prompts,
  load_questions,
  shuffles,
)


@pytest.fixture(scope="module")
def gpt2():
  return tokenizers.gpt2()


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_prompts_in_pairs(gpt2, task):
  prompts = load_prompts(task, gpt2, examples=16)
  pairs = prompts.pairs
  assert (pairs.name, pairs.split, len(pairs)) == (task, "discovery", 16)
  differ = pairs.clean != pairs.reference
  assert differ.any(axis=1).all()
  assert (prompts.buckets[differ] == BUCKETS.index("demo_label")).all()
  for bucket in range(len(BUCKETS)):
    assert (prompts.buckets == bucket).any(axis=1).all()


def test_discovery_has_twelve_prompts_a_rule_and_answer_and_seed(gpt2):
  prompts = load_prompts("hierarchical", gpt2)
  answers = [gpt2.decode([i]) for i in prompts.pairs.answer]
  cells = collections.Counter(zip(prompts.pairs.group, answers, strict=True))
  assert len(prompts) == 192
  assert len(cells) == 8 and set(cells.values()) == {24}


def test_purposes_share_no_prompt(gpt2):
  rows = [
    {tuple(row) for row in load_prompts(
      "modular", gpt2, purpose=purpose, examples=40).pairs.clean.tolist()}
    for purpose in ("discovery", "paths", "evaluation", "means")
  ]  # fmt: skip
  assert len(set().union(*rows)) == sum(map(len, rows)) == 160


def test_sizes_are_those_of_the_paper(gpt2):
  assert len(load_prompts("hierarchical", gpt2, purpose="paths")) == 200
  assert len(load_prompts("antonym", gpt2, purpose="evaluation")) == 100


@pytest.mark.parametrize("task", TASKS)
def test_questions_have_ten_demonstrations(gpt2, task):
  prompts = load_questions(task, gpt2, examples=6)
  for row, length in zip(
    prompts.pairs.clean, prompts.pairs.lengths, strict=True
  ):
    text = gpt2.decode(row[1:length])
    assert text.count("Q: ") == 11 and text.count("\nA: ") == 10
    assert text.endswith("\nA:")
  if task == "country-capital":
    assert gpt2.decode(prompts.pairs.answer[:1]).startswith(" ")


def test_shuffles_are_of_the_same_prompts(gpt2):
  prompts = load_prompts("hierarchical", gpt2, examples=8)
  found = shuffles(prompts, gpt2, 5)
  assert len(found) == 5 and len({pairs.digest for pairs in found}) == 5
  for pairs in found:
    np.testing.assert_array_equal(pairs.reference, prompts.pairs.clean)
    np.testing.assert_array_equal(pairs.answer, prompts.pairs.answer)


def test_a_cell_has_four_sets_of_prompts(gpt2):
  found = load_cell("modular", gpt2, examples=6, n_shuffles=3)
  assert [pairs.name for pairs in found.shuffled] == ["modular"] * 3
  for pairs in found.shuffled:
    np.testing.assert_array_equal(pairs.reference, found.discovery.pairs.clean)
  splits = [
    x.pairs.split for x in (found.discovery, found.paths, found.evaluation)
  ]
  assert splits == ["discovery", "paths", "evaluation"]
  assert [len(found.paths), len(found.evaluation)] == [6, 6]
  with refusal("examples: got 1"):
    load_cell("modular", gpt2, examples=1)
  with refusal("n_shuffles: got 1"):
    load_cell("modular", gpt2, n_shuffles=1)


def test_what_does_not_exist_is_refused(gpt2):
  with refusal("task: got 'sorting'; expected one of antonym, country-capital"):
    load_prompts("sorting", gpt2)
  with refusal("purpose: got 'training'"):
    load_prompts("modular", gpt2, purpose="training")
  with refusal("tokenizer: got None"):
    load_questions("modular", None)
  with refusal("examples: got 0"):
    load_prompts("modular", gpt2, examples=0)


def test_labels_of_several_tokens_are_told(gpt2):
  toy = toy_tokenizer.tokenizer()
  with refusal("task hierarchical: got label 'A' after", "not one token"):
    load_prompts("hierarchical", toy)
