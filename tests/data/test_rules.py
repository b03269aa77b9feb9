"""Are labels those of the rules, and rules and answers balanced?"""

import collections

import pytest
from one_line import refusal

from headjax.data.rules import FAMILIES, rule_examples

# The definitions again, by name.
RULES = {
  "first above 3": lambda a, b: a in (4, 5, 6, 7),
  "second above 3": lambda a, b: b in (4, 5, 6, 7),
  "sum above 7": lambda a, b: a + b >= 8,
  "both equal": lambda a, b: a == b,
} | {
  f"sum divisible by {m}": lambda a, b, m=m: (a + b) in range(0, 15, m)
  for m in (2, 3, 5, 7)
}


def label(rule, given):
  a, b = map(int, given.split(","))
  assert 0 <= a <= 7 and 0 <= b <= 7
  return "B" if RULES[rule](a, b) else "A"


@pytest.mark.parametrize("family", FAMILIES)
class TestEveryFamily:
  def test_labels_follow_the_rule_and_flips_another(self, family):
    clean, flipped = rule_examples(family, 64, "x")
    for own, other in zip(clean, flipped, strict=True):
      assert own.group != other.group
      assert {own.group, other.group} <= {r.name for r in FAMILIES[family]}
      for given, shown in own.demonstrations:
        assert shown == label(own.group, given)
      for given, shown in other.demonstrations:
        assert shown == label(other.group, given)
      assert [x for x, _ in own.demonstrations] == [
        x for x, _ in other.demonstrations
      ]
      assert own.demonstrations != other.demonstrations
      assert own.query == other.query
      assert own.answer == other.answer == label(own.group, own.query)
      assert {own.answer, own.foil} == {"A", "B"}

  def test_inputs_of_a_prompt_differ(self, family):
    for example in rule_examples(family, 32, "x")[0]:
      inputs = [given for given, _ in example.demonstrations]
      assert len({*inputs, example.query}) == 5

  def test_rules_and_answers_are_balanced(self, family):
    clean, flipped = rule_examples(family, 96, "x")
    cells = collections.Counter((e.group, e.answer) for e in clean)
    assert len(cells) == 8 and set(cells.values()) == {12}
    first = collections.Counter((e.group, e.answer) for e in clean[:8])
    assert set(first.values()) == {1}
    flips = collections.Counter(
      (a.group, b.group) for a, b in zip(clean, flipped, strict=True)
    )
    assert len(flips) == 12

  def test_examples_are_distinct_and_the_same_every_time(self, family):
    clean, _ = rule_examples(family, 64, "x")
    assert len(set(clean)) == 64
    assert rule_examples(family, 64, "x")[0] == clean
    assert rule_examples(family, 16, "x")[0] == clean[:16]
    assert not set(rule_examples(family, 64, "y")[0]) & set(clean)


def test_more_demonstrations_can_be_shown():
  clean, _ = rule_examples("modular", 8, "x", shots=10)
  assert {len(e.demonstrations) for e in clean} == {10}


def test_what_does_not_exist_is_refused():
  with refusal("family: got 'linear'; expected one of hierarchical, modular"):
    rule_examples("linear", 3)
  with refusal("shots: got 0"):
    rule_examples("modular", 3, shots=0)
