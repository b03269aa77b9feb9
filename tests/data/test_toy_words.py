"""Are the toy words exactly those that the tasks need, and few?"""

import pytest

from headjax.data import SPLITS, toy_words
from headjax.data.tasks import PLURAL, QUOTE, SVA

# Task, pool, and the toy list that it draws from.
LISTS = [
  (SVA, "subject", toy_words.PEOPLE),
  (SVA, "attractor", toy_words.THINGS),
  (PLURAL, "noun", toy_words.THINGS),
  (PLURAL, "first", toy_words.FIRST_ADJECTIVES),
  (PLURAL, "last", toy_words.LAST_ADJECTIVES),
  (QUOTE, "variable", toy_words.VARIABLES),
  (QUOTE, "string", toy_words.STRING_WORDS),
]


@pytest.mark.parametrize(
  ("template", "pool", "chosen"),
  LISTS,
  ids=[f"{template.name} {pool}" for template, pool, _ in LISTS],
)
def test_a_list_has_the_words_of_every_split_and_no_other(
  toy, template, pool, chosen
):
  used = [template.words(toy, split)[pool] for split in SPLITS]
  assert tuple(map(len, used)) == template.pools[pool].sizes
  assert sorted(word for part in used for word in part) == sorted(chosen)


def test_string_words_are_nouns_and_adjectives():
  nouns = {pair[0] for pair in toy_words.PEOPLE + toy_words.THINGS}
  adjectives = {*toy_words.FIRST_ADJECTIVES, *toy_words.LAST_ADJECTIVES}
  assert set(toy_words.STRING_WORDS) <= nouns | adjectives


def test_the_tiny_models_have_room_for_them(toy):
  assert 450 < toy.d_vocab <= 512
