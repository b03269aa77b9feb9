"""Which rule labels these numbers? Prompts that show one, and its flip.

An input is two digits from 0 to 7; its label is B where the rule holds, else A.
The flip of a prompt shows the same inputs, labelled by another rule of the
family.

Source: paper C, hierarchical and modular rule tasks. Inputs of a prompt differ,
and so do the labels of a prompt and its flip; the paper does not ask for that.
"""

import types
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from headjax.checks import check, check_choice, fail
from headjax.data.in_context import Example
from headjax.data.stream import draw

LABELS = ("A", "B")
_DIGITS = 8


class Rule(NamedTuple):
  """When a pair of digits has label B.

  Attributes:
    name: for groups and tables.
    holds: both digits -> whether it does.
  """

  name: str
  holds: Callable[[int, int], bool]


def _multiple_of(m: int) -> Rule:
  return Rule(f"sum divisible by {m}", lambda a, b: (a + b) % m == 0)


FAMILIES: Mapping[str, Sequence[Rule]] = types.MappingProxyType(
  {
    "hierarchical": (
      Rule("first above 3", lambda a, b: a > 3),
      Rule("second above 3", lambda a, b: b > 3),
      Rule("sum above 7", lambda a, b: a + b > 7),
      Rule("both equal", lambda a, b: a == b),
    ),
    "modular": tuple(map(_multiple_of, (2, 3, 5, 7))),
  }
)


def rule_examples(
  family: str, count: int, *labels: str | int, shots: int = 4
) -> tuple[list[Example], list[Example]]:
  """Examples and their flips, the same on every machine.

  Rules and answers are balanced: any first 8 examples of a family with four
  rules have each rule with each answer once.

  Args:
    family: one of FAMILIES.
    count: how many.
    labels: what they are for, such as a split; others give other examples.
    shots: demonstrations of each.

  Returns:
    The examples, and their flips, whose answer is still that of the example.

  Raises:
    ValueError: no such family, or more examples than there are.
  """
  check_choice("family", family, FAMILIES)
  check(
    1 <= shots <= 32,
    "shots",
    shots,
    "1 to 32 demonstrations of 64 inputs",
    "show fewer",
  )
  found, seen = [], set()
  for i in range(count):
    which = (family, shots, *labels, i)
    found.append(_example(FAMILIES[family], i, shots, which, seen))
  clean, flipped = zip(*found, strict=True)
  return list(clean), list(flipped)


def _example(rules, i, shots, which, seen):
  """One example and its flip; its rule and answer follow from its number."""
  rule = (i // 2) % len(rules)
  for attempt in range(2000):
    other = rule + 1 + draw(len(rules) - 1, *which, attempt, "flip")
    other = rules[other % len(rules)]
    *shown, query = _inputs(shots + 1, (*which, attempt))
    own = [_label(rules[rule], pair) for pair in shown]
    new = [_label(other, pair) for pair in shown]
    answer = _label(rules[rule], query)
    key = (tuple(shown), query, tuple(own))
    if answer == LABELS[i % 2] and own != new and key not in seen:
      seen.add(key)
      foil = LABELS[answer == LABELS[0]]
      names = rules[rule].name, other.name
      return tuple(
        Example(
          tuple(zip(map(_written, shown), given, strict=True)),
          _written(query),
          answer,
          foil,
          name,
        )
        for given, name in zip((own, new), names, strict=True)
      )
  fail(
    "count",
    f"{i} distinct examples of {which[0]} with {shots} demonstrations",
    "more",
    "ask for fewer examples, or show more",
  )


def _inputs(count, which) -> list[tuple[int, int]]:
  """Different pairs of digits."""
  found, step = [], 0
  while len(found) < count:
    pair = divmod(draw(_DIGITS**2, *which, step), _DIGITS)
    step += 1
    if pair not in found:
      found.append(pair)
  return found


def _label(rule: Rule, pair: tuple[int, int]) -> str:
  return LABELS[rule.holds(*pair)]


def _written(pair: tuple[int, int]) -> str:
  return f"{pair[0]},{pair[1]}"
