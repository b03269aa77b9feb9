"""How does toy text become token ids? A token is a word with its space."""

import itertools
from collections.abc import Sequence

import tokenizers as backends
from tokenizers import decoders, models, pre_tokenizers

from headjax.data import toy_words as words
from headjax.models.tokenizers import Tokenizer

END_OF_TEXT = "<|endoftext|>"
UNKNOWN = "<unk>"
# A line break, or a word or a mark with the space before it.
PATTERN = r"\n| ?\w+| ?[^\w\s]"

# What follows a space, and what begins a line or a string.
_SPACED = (
  words.PEOPLE, words.THINGS, words.FIRST_ADJECTIVES, words.LAST_ADJECTIVES,
  words.VERBS, words.PREPOSITIONS, words.NUMERALS, words.NAMES, words.ADVERBS,
  words.COPULAS, words.INTRANSITIVES, words.TRANSITIVES, words.OTHER_WORDS,
)  # fmt: skip
_BARE = (
  words.VARIABLES, words.STRING_WORDS, words.NAMES, words.PRONOUNS,
  words.COPULAS_FIRST, words.DEMONSTRATIVES, words.FIRST_WORDS,
)  # fmt: skip


def tokenizer(more: Sequence[str] = ()) -> Tokenizer:
  """The vocabulary of the toy language; every other word is unknown.

  Args:
    more: tokens beside those of the language, which get the ids after them.
  """
  spaced = [f" {form}" for pool in _SPACED for form in _forms(pool)]
  bare = [form for pool in _BARE for form in _forms(pool)]
  every = (END_OF_TEXT, UNKNOWN, *words.MARKS, *spaced, *bare, *more)
  ids = {token: i for i, token in enumerate(dict.fromkeys(every))}
  backend = backends.Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
  backend.pre_tokenizer = pre_tokenizers.Split(
    backends.Regex(PATTERN), behavior="isolated"
  )
  backend.decoder = decoders.Fuse()
  backend.add_special_tokens([END_OF_TEXT])
  return Tokenizer(backend, "toy", ids[END_OF_TEXT])


def _forms(pool) -> list[str]:
  """The words of a pool in order, both forms of those that have two."""
  pairs = [(word,) if isinstance(word, str) else word for word in pool]
  return list(itertools.chain.from_iterable(pairs))
