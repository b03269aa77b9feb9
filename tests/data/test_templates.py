"""Does a template refuse tokenizers and word lists that break its design?"""

import pytest
import tokenizers as backends
from tokenizers import decoders, models, pre_tokenizers

from headjax.data import SPLITS, Pool, Template, load_task
from headjax.data.templates import next_token
from headjax.models.tokenizers import Tokenizer

NAMES = tuple(f"name{i}" for i in range(40))
MANY = tuple(f"name{i}" for i in range(60))


def toy_tokenizer(*words):
  """A word-level vocabulary; every other word is unknown."""
  ids = {word: i for i, word in enumerate(["<unk>", *words])}
  backend = backends.Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
  backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
  backend.decoder = decoders.Fuse()
  return Tokenizer(backend, "toy")


def toy(**changes):
  """Two names and a verb; the reference changes the number of the first."""
  fields = {
    "name": "toy",
    "pools": {
      "name": Pool(NAMES, (12, 10, 10, 2)),
      "verb": Pool((("a", "b"),)),
    },
    "slots": {"name": "name", "other": "name", "verb": "verb"},
    "group": "name",
    "prompt": lambda w, i, j: (
      f"The {w['name']} {w['other']} {'xy'[j]} {w['verb'][i]}"
    ),
    "answers": lambda w: tuple(f" {form}" for form in w["verb"]),
    "flipped": 0,
  }
  return Template(**(fields | changes))


def test_a_template_works_on_a_word_level_vocabulary():
  tokenizer = toy_tokenizer("The", "a", "b", "x", "y", *NAMES)
  pairs = toy()(tokenizer, "evaluation")
  assert len(pairs) == SPLITS["evaluation"]
  assert len(set(pairs.group)) == 10
  assert not (pairs.clean[:, 1] == pairs.clean[:, 2]).any()
  position = (
    tokenizer.decode([pairs.clean[0, 4]]),
    tokenizer.decode(pairs.answer),
  )
  assert position == ("a", "aabb" * 60)


def test_lists_that_make_too_few_prompts_are_refused():
  tokenizer = toy_tokenizer("The", "a", "b", "x", "y", *NAMES)
  # Two names in two orders and four conditions.
  with pytest.raises(ValueError, match="task toy: got 8 distinct prompts"):
    toy()(tokenizer, "holdout")


def test_no_word_changes_its_split_between_tokenizers():
  def groups(split, size, dropped=()):
    names = [name for name in MANY if name not in dropped]
    tokenizer = toy_tokenizer("The", "a", "b", "x", "y", *names)
    pool = Pool(MANY, (size, size, size, 0))
    template = toy(pools=toy().pools | {"name": pool})
    return set(template(tokenizer, split).group)

  splits = ("discovery", "validation", "evaluation")
  whole = {split: groups(split, 20) for split in splits}
  # One split loses words: the others must not move up to fill the gap.
  dropped = sorted(whole["evaluation"])[:8]
  for split in splits:
    assert groups(split, 12, dropped) <= whole[split]


def test_too_few_words_are_counted_and_named():
  tokenizer = toy_tokenizer("The", "a", "b", "x", "y", *NAMES[:20])
  with pytest.raises(ValueError) as error:
    toy()(tokenizer, "discovery")
  message = str(error.value)
  assert message.startswith("task toy, split discovery, words for name: got ")
  assert "that tokenizer toy writes as one token (not name" in message
  assert "expected at least 12" in message
  assert "name3," not in message and "\n" not in message


def test_a_long_list_of_failed_words_is_shortened(gpt2_tokenizer):
  with pytest.raises(ValueError, match=r"got 0 of \d+ .* and \d+ more\)"):
    load_task("sva", toy_tokenizer("The", "the"))


def test_a_prompt_with_two_differences_is_refused():
  tokenizer = toy_tokenizer("The", "a", "b", "x", "y", *NAMES)
  two = toy(prompt=lambda w, i, j: f"The {w['name']} {'xy'[i]} {w['verb'][i]}")
  with pytest.raises(ValueError, match="task toy: got 4 and 4 tokens, 2 of"):
    two(tokenizer, "evaluation")
  longer = toy(prompt=lambda w, i, j: f"The {w['name']}" + i * " a")
  with pytest.raises(ValueError, match="task toy: got 2 and 3 tokens, 0 of"):
    longer(tokenizer, "evaluation")


def test_an_answer_of_two_tokens_is_refused():
  tokenizer = toy_tokenizer("The", "a", "b", "x", "y", *NAMES)
  wrong = toy(answers=lambda w: (" a", " a b"))
  with pytest.raises(ValueError, match="task toy: got answers"):
    wrong(tokenizer, "evaluation")


def test_the_next_token_belongs_to_its_context(gpt2_tokenizer):
  single = gpt2_tokenizer.single
  assert next_token(gpt2_tokenizer, "The", " cat") == single(" cat")
  assert next_token(gpt2_tokenizer, "", "The") == single("The")
  # "The " + "cat" is written as "The" + " cat".
  assert next_token(gpt2_tokenizer, "The ", "cat") is None
  assert next_token(gpt2_tokenizer, "The", " cat sat") is None
  assert next_token(toy_tokenizer("The"), "The", " cat") is None
