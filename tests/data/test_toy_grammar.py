"""Do rules derive what they say, and is every line of the text in order?

The lines are read by another grammar, of regular expressions over word classes,
which knows who agrees with whom.
"""

import itertools
import re
from fractions import Fraction

import numpy as np
import pytest

from headjax.data import SPLITS, load_task, nouns, toy_grammar, words
from headjax.data.toy import Toy

PLURALS = dict(nouns.PEOPLE + nouns.ANIMALS + nouns.THINGS)
ADJECTIVES = {*words.FIRST_ADJECTIVES, *words.LAST_ADJECTIVES}
CLASSES = {
  **dict.fromkeys(PLURALS, "N0"),
  **dict.fromkeys(PLURALS.values(), "N1"),
  **dict.fromkeys(ADJECTIVES, "A"),
  **dict.fromkeys(words.VERBS, "T"),
  **dict.fromkeys(words.PREPOSITIONS, "P"),
  **dict.fromkeys("two three four five six".split(), "Q1"),
  "one": "Q0",
  **dict.fromkeys("is was Is".split(), "B0"),
  **dict.fromkeys("are were Are".split(), "B1"),
  **dict.fromkeys("runs sings sleeps waits".split(), "I0"),
  **dict.fromkeys("run sing sleep wait".split(), "I1"),
  **dict.fromkeys("likes needs sees".split(), "L0"),
  **dict.fromkeys("like need see".split(), "L1"),
  **dict.fromkeys("always never now often still very not".split(), "+"),
  **dict.fromkeys("The the".split(), "D"),
  "This": "D0",
  "These": "D1",
  **dict.fromkeys("She He They Anna Ben Carla David Emma Frank".split(), "W"),
}
# A counted noun has the number of its numeral; so do the two in a row.
COUNTED = r"Q(?P<{0}>\d) (?:A ){{0,2}}N(?P={0}) "
OBJECT = "(?:D N[01] |" + COUNTED.format("q") + ")"
PREDICATE = (
  r"(?:(?:\+ )?I(?P=n) |L(?P=n) D N\d |B(?P=n) (?:\+ )?"
  r"(?:A (?:and A )?|P D N\d ))"
)
THING = r"D (?:A )?N\d "
SUBJECT = (
  rf"(?:D (?:A )?N(?P<n>\d)) (?:P {THING}(?:and {THING})?|who T {OBJECT})?"
)
SENTENCES = [
  re.compile(pattern)
  for pattern in (
    f"(?:W said that )?{SUBJECT}{PREDICATE}[.]",
    rf"D N\d and D N\d {PREDICATE.replace('(?P=n)', '1')}[.]",
    r"D N(?P<n>\d) I(?P=n) but D N(?P<m>\d) B(?P=m) A [.]",
    rf"B(?P<n>\d) D N(?P=n) P {THING}A [?]",
    rf"D(?P<n>\d) A N(?P=n) {PREDICATE}[.]",
    f"W T {OBJECT}(?:and {COUNTED.format('r')})?[.]",
    "W met W [.]",
  )
]
PREPOSITION = f"(?:{'|'.join(words.PREPOSITIONS)})"
STRING = r"(?P<quote>['\"])\w+(?: \w+){0,3}(?P=quote)"


@pytest.fixture(scope="module")
def text():
  corpus = Toy()
  rows = corpus.sequences(1, np.arange(1500), 128)
  texts = [corpus.tokenizer.decode(row) for row in rows]
  # What the cut has left of the last line is none.
  rows = [re.split(r"\n|<\|endoftext\|>", text)[:-1] for text in texts]
  return [line for row in rows for line in row if line]


def sentence(line):
  """The classes of its words; a word without one stays as it is."""
  found = re.findall(r"\w+|[.?]", line)
  return " ".join(CLASSES.get(word, word) for word in found)


def kind(line):
  if line.startswith("List: "):
    first, *others = line.removeprefix("List: ").removesuffix(".").split(", ")
    known = set(first.split()) <= CLASSES.keys() and " " in first
    return "list" if known and set(others) == {first} else None
  if re.fullmatch(rf"\w+ = {STRING}", line):
    return "assignment"
  if re.fullmatch(rf"\w+ said {STRING}\.", line):
    return "speech"
  classes = sentence(line)
  for i, pattern in enumerate(SENTENCES):
    if pattern.fullmatch(classes):
      return i
  return None


def test_every_line_is_in_order(text):
  kinds = {}
  for line in text:
    kinds.setdefault(kind(line), []).append(line)
  assert None not in kinds, kinds[None][:5]
  assert len(text) > 12000
  assert min(map(len, kinds.values())) > 50
  assert len(kinds) == 3 + len(SENTENCES)


@pytest.mark.parametrize(
  "line",
  [
    "The farmers near the cat is old.",
    "The farmer near the cats are old.",
    "The farmer and the cat is old.",
    "Is the farmers near the cat old?",
    "These old cat are red.",
    "She saw one small red cats.",
    "She saw two cats and one small red cats.",
    "name = 'red\"",
    "List: cat red, cat blue.",
    "The farmer sees.",
  ],
)
def test_the_reader_refuses_what_is_wrong(line):
  assert kind(line) is None


def test_repeated_sentences_are_equal(text):
  said = [re.fullmatch(r"(\w+) said(.*)\.", line) for line in text]
  pairs = [
    (a.groups(), b.groups()) for a, b in itertools.pairwise(said) if a and b
  ]
  repeated = [a[0] != b[0] for a, b in pairs if a[1] == b[1]]
  assert sum(repeated) > 200 and np.mean(repeated) > 0.98


def owners(toy, task, pattern):
  """Word -> split, for both words that a task writes side by side."""
  found = {}, {}
  for split in SPLITS:
    pairs = load_task(task, toy, split=split)
    for ids in (*pairs.clean, *pairs.reference):
      both = re.search(pattern, toy.decode(ids)).groups()
      for role, word in zip(found, both, strict=True):
        assert role.setdefault(word, split) == split
  return found


@pytest.mark.parametrize(
  ("task", "pattern", "least"),
  [
    ("sva", rf"[Tt]he (?:\w+ )?(\w+) {PREPOSITION} the (?:\w+ )?(\w+)$", 3000),
    ("plural", r"\b(?:one|two|three|four|five|six) (\w+) (\w+)$", 2000),
    ("quote", r"['\"](?:\w+ )*(\w+) (\w+)$", 1000),
  ],
)
def test_words_of_one_split_never_meet_as_in_a_prompt(
  text, toy, task, pattern, least
):
  firsts, seconds = owners(toy, task, pattern)
  met = 0
  for line in text:
    # Every start of the line may be a prompt.
    for end in re.finditer(r"\b", line):
      match = re.search(pattern, line[: end.start()])
      first, second = match.groups() if match else ("", "")
      if first in firsts and second in seconds:
        met += 1
        assert firsts[first] != seconds[second], line
  assert met > least


def test_no_prompt_is_in_the_text(text, toy):
  whole = "\n".join(text)
  assert sum(line in whole for line in text[:50]) == 50
  for task in ("sva", "quote", "plural"):
    for split in SPLITS:
      pairs = load_task(task, toy, split=split)
      for row, n in zip(pairs.clean, pairs.lengths, strict=True):
        prompt = re.escape(toy.decode(row[:n]))
        assert not re.search(rf"{prompt}\b", whole)


def test_shares_of_derived_lines_sum_to_one():
  shares, lines = zip(*toy_grammar.lines(), strict=True)
  assert sum(shares) == 1 and min(shares) > 0
  assert not re.search("[<>#%$]", "".join(lines))


def test_rules_are_derived_with_their_weights_and_numbers(monkeypatch):
  rules = {
    "line": """
      3 {a#}<b#>
      1 x\ny <c> <c>.
    """,
    "b#": "1 #\n3 #%",
    "c": "1 p\n2 q",
  }
  monkeypatch.setattr(toy_grammar, "RULES", rules)
  expected = {
    **{f"{{a{i}}}{i}": (3, 32) for i in "01"},
    **{f"{{a{i}}}{i}{j}": (9, 64) for i in "01" for j in "01"},
    "x\ny p p.": (1, 36),
    "x\ny p q.": (2, 36),
    "x\ny q p.": (2, 36),
    "x\ny q q.": (4, 36),
  }
  assert {line: share for share, line in toy_grammar.lines()} == {
    line: Fraction(*share) for line, share in expected.items()
  }
