"""Do the built-in tasks keep their promises, for real tokenizers?"""

import collections
import re

import numpy as np
import pytest

from headjax.data import SPLITS, TASKS, load_task, nouns

GROUPS = {
  "sva": {"discovery": 5, "validation": 4, "evaluation": 4, "holdout": 2},
  "quote": {"discovery": 10, "validation": 8, "evaluation": 8, "holdout": 4},
  "plural": {
    "discovery": 30,
    "validation": 24,
    "evaluation": 24,
    "holdout": 8,
  },
}
PLURALS = dict(nouns.PEOPLE + nouns.ANIMALS + nouns.THINGS)
SINGULARS = {plural: singular for singular, plural in PLURALS.items()}
PLURAL_NUMERALS = "two three four five six seven eight nine ten".split()


@pytest.fixture(scope="module")
def cases(tokenizer):
  return {
    (task, split): load_task(task, tokenizer, split=split)
    for task in TASKS
    for split in SPLITS
  }


def texts(pairs, tokenizer, field="clean"):
  ids = getattr(pairs, field)
  return [
    tokenizer.decode(row[:n]) for row, n in zip(ids, pairs.lengths, strict=True)
  ]


def grammar(task, text):
  """(factor 0, factor 1, answers, words that a split owns) of a prompt."""
  if task == "sva":
    match = re.fullmatch(r"The (\w+) \w+ the (\w+)", text)
    subject, attractor = match.groups()
    return (
      is_plural(subject),
      is_plural(attractor),
      (" is", " are"),
      {
        noun(subject),
        noun(attractor),
      },
    )
  if task == "quote":
    match = re.fullmatch(
      r"(\w+) = (['\"])(\w+)\2\n(\w+) = (['\"])(\w+) (\w+)", text
    )
    a, first, b, c, second, d, e = match.groups()
    return first == '"', second == '"', ("'", '"'), {a, b, c, d, e}
  match = re.fullmatch(r"She \w+ (\w+) (\w+) and (\w+) (\w+) (\w+)", text)
  first, thing, second, *adjectives = match.groups()
  assert {first, second} <= {"one", *PLURAL_NUMERALS}
  assert is_plural(thing) == (first != "one")
  singular = noun(thing)
  answers = (f" {singular}", f" {PLURALS[singular]}")
  return first != "one", second != "one", answers, {singular, *adjectives}


def is_plural(word):
  assert (word in PLURALS) != (word in SINGULARS)
  return word in SINGULARS


def noun(word):
  return SINGULARS.get(word, word)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("split", SPLITS)
class TestEverySplit:
  def test_counts_are_those_of_the_design(self, cases, task, split):
    pairs = cases[task, split]
    assert (pairs.name, pairs.split) == (task, split)
    assert len(pairs) == SPLITS[split]
    conditions = collections.Counter(pairs.condition.tolist())
    assert conditions == dict.fromkeys(range(4), SPLITS[split] // 4)
    groups = collections.Counter(pairs.group.tolist())
    assert len(groups) == GROUPS[task][split]
    assert max(groups.values()) == min(groups.values())

  def test_conditions_are_balanced_in_every_group(self, cases, task, split):
    pairs = cases[task, split]
    cells = collections.Counter(
      zip(pairs.group.tolist(), pairs.condition.tolist(), strict=True)
    )
    assert len(cells) == 4 * GROUPS[task][split]
    assert max(cells.values()) - min(cells.values()) <= 1

  def test_first_examples_are_balanced_too(self, cases, task, split):
    condition = cases[task, split].condition
    for n in (4, 8, 20, 32):
      np.testing.assert_array_equal(np.bincount(condition[:n]), [n // 4] * 4)

  def test_one_token_differs(self, cases, task, split):
    pairs = cases[task, split]
    np.testing.assert_array_equal((pairs.clean != pairs.reference).sum(1), 1)
    assert set(pairs.lengths.tolist()) == {pairs.clean.shape[1]}
    position = {"sva": 1, "quote": 8, "plural": 5}[task]
    np.testing.assert_array_equal(pairs.first_difference, position)

  def test_prompts_are_distinct(self, cases, task, split):
    pairs = cases[task, split]
    assert len(np.unique(pairs.clean, axis=0)) == len(pairs)

  def test_prompts_follow_their_grammar(self, cases, tokenizer, task, split):
    pairs = cases[task, split]
    flipped = 0 if task == "sva" else 1
    references = texts(pairs, tokenizer, "reference")
    for i, text in enumerate(texts(pairs, tokenizer)):
      first, second, answers, owned = grammar(task, text)
      levels = [first, second]
      assert pairs.condition[i] == 2 * first + second
      right = levels[flipped]
      assert tokenizer.decode([pairs.answer[i]]) == answers[right]
      assert tokenizer.decode([pairs.foil[i]]) == answers[not right]
      assert tokenizer.encode(text + answers[right]) == [
        *pairs.clean[i],
        pairs.answer[i],
      ]
      assert pairs.group[i] in owned
      levels[flipped] = not right
      assert grammar(task, references[i]) == (*levels, answers, owned)


@pytest.mark.parametrize("task", TASKS)
def test_splits_share_no_vocabulary(cases, tokenizer, task):
  owned = {
    split: set().union(
      *(grammar(task, t)[3] for t in texts(cases[task, split], tokenizer))
    )
    for split in SPLITS
  }
  assert sum(map(len, owned.values())) == len(set().union(*owned.values()))


def test_the_group_is_the_word_that_the_design_names(cases, tokenizer):
  for task in TASKS:
    pairs = cases[task, "evaluation"]
    for group, text in zip(pairs.group, texts(pairs, tokenizer), strict=True):
      word = {
        "sva": lambda t: noun(t.split()[1]),
        "quote": lambda t: t.split()[0],
        "plural": lambda t: noun(t.split()[3]),
      }[task](text)
      assert word == group


def test_loading_twice_gives_the_same_pairs(cases, tokenizer):
  digests = {case: pairs.digest for case, pairs in cases.items()}
  assert len(set(digests.values())) == len(digests)
  for (task, split), digest in digests.items():
    assert load_task(task, tokenizer, split=split).digest == digest


def test_evaluation_is_the_default_and_examples_are_its_first(cases, tokenizer):
  whole = cases["sva", "evaluation"]
  assert load_task("sva", tokenizer).digest == whole.digest
  part = load_task("sva", tokenizer, examples=32)
  assert part.digest == whole.select(range(32)).digest
  counts = collections.Counter(part.group.tolist())
  assert set(counts.values()) == {8}


def test_a_path_is_a_task(tmp_path, gpt2_tokenizer):
  path = tmp_path / "mine.jsonl"
  line = '{"clean": "a", "reference": "b", "answer": " c", "foil": " d"}\n'
  path.write_text(line * 3)
  for name in (path, str(path)):
    pairs = load_task(name, gpt2_tokenizer, examples=2)
    assert (pairs.name, pairs.split, len(pairs)) == ("mine", "file", 2)
  with pytest.raises(
    ValueError, match="1 to 3, the size of split file of mine"
  ):
    load_task(path, gpt2_tokenizer, examples=4)


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    (
      {"name": "svo"},
      "task: got 'svo'; expected one of plural, quote, sva, or",
    ),
    ({"split": "test"}, "split: got 'test'; expected one of discovery, eval"),
    (
      {"split": "holdout", "examples": 33},
      "examples: got 33; expected 1 to 32",
    ),
    ({"examples": 0}, "examples: got 0; expected 1 to 240, the size of split"),
  ],
)
def test_what_does_not_exist_is_refused(gpt2_tokenizer, arguments, message):
  arguments = {"name": "sva"} | arguments
  with pytest.raises(ValueError, match=message) as error:
    load_task(arguments.pop("name"), gpt2_tokenizer, **arguments)
  assert "\n" not in str(error.value)
