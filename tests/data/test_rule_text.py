"""Does rule text follow its rules, and is it the same everywhere?"""

import hashlib

import numpy as np
import pytest
from one_line import refusal

from headjax.data.generated import GENERATED
from headjax.data.rule_text import LONGEST, RuleText
from headjax.data.rules import FAMILIES
from headjax.data.token_files import Corpus
from headjax.studies.writers.prompts import load_cell

FIRST = "ee659b9d0c1baa1c8b9d924d4506aa0ca5f80af651318cdaf6fb3994126d7597"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_line_follows_the_one_rule_of_its_text(family):
  corpus = RuleText(family)
  rows = corpus.sequences(3, np.arange(200), LONGEST)
  used = set()
  for row in rows:
    assert row[0] == corpus.tokenizer.bos
    lines = corpus.tokenizer.decode(row[1:].tolist()).splitlines()
    parts = [line.split(",") for line in lines]
    assert len({(a, b) for a, b, _ in parts}) == len(parts) == 64
    fits = [
      rule.name
      for rule in FAMILIES[family]
      if all(rule.holds(int(a), int(b)) == (y == "B") for a, b, y in parts)
    ]
    assert len(fits) == 1
    used |= set(fits)
  assert len(used) == 4


def test_sequences_depend_on_seed_and_index_alone():
  corpus = RuleText("hierarchical")
  rows = corpus.sequences(0, np.arange(50), 61)
  np.testing.assert_array_equal(
    corpus.sequences(0, np.array([7, 2**40]), 61)[0], rows[7]
  )
  np.testing.assert_array_equal(
    corpus.sequences(0, np.arange(50), 20), rows[:, :20]
  )
  assert len(np.unique(rows, axis=0)) == 50
  for other in (corpus.sequences(1, np.arange(50), 61),
                corpus.validation(np.arange(50), 61)):  # fmt: skip
    assert (other != rows).any(axis=1).all()
  content = hashlib.sha256(rows.astype("<i4").tobytes()).hexdigest()
  assert content == FIRST


def test_inputs_and_rules_are_drawn_evenly():
  corpus = RuleText("modular")
  rows = corpus.sequences(0, np.arange(6400), 7)
  text = [corpus.tokenizer.decode(row[1:4].tolist()) for row in rows]
  _, counts = np.unique(text, return_counts=True)
  assert len(counts) == 64
  # Chi squared with 63 degrees of freedom: 110 is beyond 1 in 4000.
  assert ((counts - 100) ** 2 / 100).sum() < 110


def test_it_is_a_corpus_and_its_tokenizer_writes_the_study():
  for name in ("rules-hierarchical", "rules-modular"):
    corpus = GENERATED[name]()
    assert corpus.name == name
    for member in ("tokenizer", "d_vocab", "digest", "check", "validation"):
      assert hasattr(Corpus, member) and hasattr(corpus, member)
  digests = {GENERATED[name]().digest for name in GENERATED}
  assert len(digests) == len(GENERATED) == 5
  prompts = load_cell("modular", corpus.tokenizer, examples=8, n_shuffles=2)
  assert prompts.discovery.pairs.clean.shape == (8, 29)
  prompts.discovery.pairs.check_vocabulary(corpus.d_vocab)
  corpus.check(61, 10, 10)
  with refusal("length: got 386; expected 2 to 385 tokens"):
    corpus.check(386, 1, 1)
  with refusal("family: got 'x'"):
    RuleText("x")
