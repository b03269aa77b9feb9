"""Which tasks are there? One row each; all yield clean and reference prompts.

A task chooses between two next tokens. The numbers 0 and 1 of a factor mean
singular and plural, or the single and the double quote.

Source: paper A, section 4 (tasks) and appendix C (splits).
"""

import os
import types
from collections.abc import Callable, Mapping

from headjax.checks import check, fail
from headjax.data import nouns, words
from headjax.data.jsonl import from_jsonl
from headjax.data.pairs import PromptPairs
from headjax.data.templates import Pool, Template
from headjax.models.tokenizers import Tokenizer

_QUOTES = ("'", '"')


def _sva_prompt(w, subject, attractor):
  return (
    f"The {w['subject'][subject]} {w['preposition']} "
    f"the {w['attractor'][attractor]}"
  )


def _quote_prompt(w, first, second):
  # The string under test stays open: its closing quote is the answer.
  a, b = _QUOTES[first], _QUOTES[second]
  return (
    f"{w['variable']} = {a}{w['string']}{a}\n"
    f"{w['other variable']} = {b}{w['head']} {w['tail']}"
  )


def _plural_prompt(w, first, second):
  # Two adjectives keep the numeral away from the position that predicts.
  return (
    f"She {w['verb']} {w['numeral'][first]} {w['noun'][first]} and "
    f"{w['other numeral'][second]} {w['first']} {w['last']}"
  )


SVA = Template(
  name="sva",
  pools={
    "subject": Pool(nouns.PEOPLE, (5, 4, 4, 2)),
    "attractor": Pool(nouns.THINGS + nouns.ANIMALS, (30, 24, 24, 8)),
    "preposition": Pool(words.PREPOSITIONS),
  },
  slots={
    "subject": "subject",
    "preposition": "preposition",
    "attractor": "attractor",
  },
  group="subject",
  prompt=_sva_prompt,
  answers=lambda w: (" is", " are"),
  flipped=0,
)

QUOTE = Template(
  name="quote",
  pools={
    "variable": Pool(
      words.VARIABLES,
      (10, 8, 8, 4),
      after=(("", ""), ('x = "y"\n', "")),
    ),
    "string": Pool(
      words.STRING_WORDS,
      (30, 24, 24, 12),
      after=(("x = '", ""), ('x = "', ""), ("red", " ")),
    ),
  },
  slots={
    "variable": "variable",
    "other variable": "variable",
    "string": "string",
    "head": "string",
    "tail": "string",
  },
  group="variable",
  prompt=_quote_prompt,
  answers=lambda w: _QUOTES,
  flipped=1,
)

PLURAL = Template(
  name="plural",
  pools={
    "noun": Pool(nouns.THINGS + nouns.ANIMALS, (30, 24, 24, 8)),
    "first": Pool(words.FIRST_ADJECTIVES, (15, 12, 12, 6)),
    "last": Pool(words.LAST_ADJECTIVES, (15, 12, 12, 6)),
    "verb": Pool(words.VERBS),
    "numeral": Pool(words.NUMERALS),
  },
  slots={
    "verb": "verb",
    "numeral": "numeral",
    "noun": "noun",
    "other numeral": "numeral",
    "first": "first",
    "last": "last",
  },
  group="noun",
  prompt=_plural_prompt,
  answers=lambda w: (f" {w['noun'][0]}", f" {w['noun'][1]}"),
  flipped=1,
)

# Task name -> (tokenizer, split) -> all pairs of the split.
TASKS: Mapping[str, Callable[[Tokenizer, str], PromptPairs]] = (
  types.MappingProxyType({"sva": SVA, "quote": QUOTE, "plural": PLURAL})
)


def check_tokenizer(tokenizer) -> None:
  """Fails if a model came without one, which prompts are made with."""
  check(
    tokenizer is not None,
    "tokenizer",
    None,
    "the tokenizer of the model",
    "put its tokenizer.json beside the weights",
  )


def load_task(
  name: str | os.PathLike[str],
  tokenizer: Tokenizer | None,
  *,
  split: str = "evaluation",
  examples: int | None = None,
) -> PromptPairs:
  """The pairs of a task, the same for the same tokenizer on every machine.

  Args:
    name: one of TASKS, or the path of a `.jsonl` file of your own pairs.
    tokenizer: of the model that will be measured.
    split: one of SPLITS; a file has no splits, and its pairs say "file".
    examples: how many of the split's pairs, from its first; None means all.
      Conditions and groups are balanced among the first ones too.

  Raises:
    ValueError: if the name, the split or the count is not one that exists, or
      the tokenizer or the file does not allow the task.

  Examples:
    >>> from headjax.data import toy_tokenizer
    >>> toy = toy_tokenizer.tokenizer()
    >>> load_task("sva", toy, examples=8)  # doctest: +ELLIPSIS
    PromptPairs(sva, evaluation: pairs 8, tokens 5, groups 2, digest ...)
  """
  name = os.fspath(name)
  check_tokenizer(tokenizer)
  if name.endswith(".jsonl"):
    pairs = from_jsonl(name, tokenizer)
  elif name in TASKS:
    pairs = TASKS[name](tokenizer, split)
  else:
    fail(
      "task",
      repr(name),
      f"one of {', '.join(sorted(TASKS))}, or a .jsonl file",
      "choose one of them",
    )
  if examples is None:
    return pairs
  check(
    1 <= examples <= len(pairs),
    "examples",
    examples,
    f"1 to {len(pairs)}, the size of split {pairs.split} of {pairs.name}",
    "ask for fewer",
  )
  return pairs.select(slice(examples))
