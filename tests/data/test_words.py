"""Are the lists rich, free of repeats, and disjoint where tasks need it?"""

import itertools
import re

import pytest

from headjax.data import nouns, words
from headjax.data.tasks import PLURAL, QUOTE, SVA

LISTS = {
  name: getattr(module, name)
  for module in (nouns, words)
  for name in dir(module)
  if name.isupper() and not name.startswith("_")
}


def forms(pool):
  return [
    f for word in pool for f in ([word] if isinstance(word, str) else word)
  ]


@pytest.mark.parametrize("name", LISTS)
def test_a_list_holds_plain_words_once(name):
  every = forms(LISTS[name])
  if name == "NUMERALS":
    every = [plural for _, plural in LISTS[name]]
  assert len(set(every)) == len(every)
  assert all(re.fullmatch("[A-Za-z]+", word) for word in every)


def test_there_are_several_hundred_nouns():
  every = forms(nouns.PEOPLE + nouns.ANIMALS + nouns.THINGS)
  assert len(set(every)) == len(every) > 900


@pytest.mark.parametrize("template", [SVA, QUOTE, PLURAL], ids=lambda t: t.name)
def test_the_lists_of_a_task_share_no_word(template):
  for a, b in itertools.combinations(template.pools.values(), 2):
    assert not set(forms(a.words)) & set(forms(b.words))


def test_regular_plurals_are_spelt_in_english():
  plurals = dict(nouns.PEOPLE + nouns.ANIMALS + nouns.THINGS)
  expected = {
    "boy": "boys",
    "lady": "ladies",
    "boss": "bosses",
    "fox": "foxes",
    "bench": "benches",
    "dish": "dishes",
    "cat": "cats",
    "child": "children",
    "knife": "knives",
  }
  assert expected == {noun: plurals[noun] for noun in expected}
