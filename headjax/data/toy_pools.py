"""Which words can stand in a slot of the toy grammar?

Where a task owns the words, they stand in the groups that its splits own.
"""

from collections.abc import Mapping, Sequence

from headjax.data import toy_words as words
from headjax.data.tasks import PLURAL, QUOTE, SVA
from headjax.data.templates import SPLITS, Word
from headjax.models.tokenizers import Tokenizer


def pools(tokenizer: Tokenizer) -> Mapping[str, Sequence[Sequence[Word]]]:
  """Pool -> its words, or pairs of singular and plural, in groups."""
  sva, quote, plural = (
    [template.words(tokenizer, split) for split in SPLITS]
    for template in (SVA, QUOTE, PLURAL)
  )
  return {
    "person": [part["subject"] for part in sva],
    "thing": [part["attractor"] for part in sva],
    "first": [part["first"] for part in plural],
    "last": [part["last"] for part in plural],
    "string": [part["string"] for part in quote],
    "variable": [part["variable"] for part in quote],
    "name": [[name] for name in words.NAMES],
    "who": [3 * words.PRONOUNS + words.NAMES],
    "noun": [[pair[0] for pair in words.PEOPLE + words.THINGS]],
    "verb": [words.VERBS],
    "preposition": [words.PREPOSITIONS],
    "adverb": [words.ADVERBS],
    "number": [words.NUMERALS],
    "is": [words.COPULAS],
    "run": [words.INTRANSITIVES],
    "like": [words.TRANSITIVES],
    "ask": [words.COPULAS_FIRST],
    "this": [words.DEMONSTRATIVES],
  }
