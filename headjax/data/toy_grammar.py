"""Which lines does the toy language have? Rules, and all that they derive.

A rule's alternatives stand one a line, each after its weight:

  <rule>         one of that rule's alternatives
  {pool}         a word of a pool, with the space before it
  {pool/other}   a word of another split than the last word from `other`
  {pool=other}   the same word as the last one from `other`
  [text] ... [=] the same text again

`#`, `%` and `$` are 0 or 1, singular or plural, equally often and the same
throughout an alternative; in the name of a rule, `#` is what it was asked for.

Words that a task writes side by side never come from the same split here.
So no prompt of any split is in the text, and no few words before an answer,
put together from the text, tell it.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction

_REPEATED = "\n".join(
  f"1 List:[{' {noun}' * n}],{again}."
  for n in range(3, 10)
  for again in ("[=],[=]", "[=],[=],[=]")
)

RULES: Mapping[str, str] = {
  "line": """
    12 <agreement>
    8 <counting>
    8 <code>
    4 <list>
    3 <repeat>
  """,
  "agreement": """
    8 The {person#} {preposition} the {thing%/person} <does#>.
    2 The {person#} {preposition} the {last} {thing%/person} <does#>.
    2 The {first} {person#} {preposition} the {thing%/person} <does#>.
    1 The {person#} {preposition} the {thing%/person} and the {thing$} <does#>.
    1 {who} said that the {person#} {preposition} the {thing%/person} <does#>.
    1 {ask#} the {person#} {preposition} the {thing%/person} {last}?
    1 The {person#} who {verb} the {thing%} <does#>.
    1 The {person#} and the {thing%} <does1>.
    1 The {person#} {run#} but the {thing%} {is%} {last}.
    1 The {thing#} {preposition} the {person%} <does#>.
    2 The {thing#} <does#>.
    2 The {person#} <does#>.
    1 {this#} {first} {thing#} <does#>.
  """,
  "does#": """
    4 {is#} {last}
    1 {is#} very {first}
    1 {is#} {adverb} {last}
    1 {is#} not {first} and {last}
    1 {is#} {preposition} the {thing%}
    1 {adverb} {run#}
    1 {like#} the {thing%}
  """,
  "counting": """
    8 {who} {verb} {number#} {thing#} and <several%> {thing%=thing}.
    2 {who} {verb} {number#} {thing#} and <several%> {thing%}.
    2 {who} {verb} {number#} {last} {thing#} and {number%} {first} {thing%}.
    1 {who} {verb} the {thing#} and {number%} {last} {thing%=thing}.
    1 {who} {verb} <several#> {thing#}.
    1 {who} {verb} <several#> {thing#} and {number%} {thing%}.
    1 The {person#} who {verb} <several%> {thing%} <does#>.
  """,
  "several#": "1 {number#} {first} {last/first}",
  "code": """
    2 {variable} = <string>
    8 {variable} = <string>\n{variable} = <string>
    1 {variable} = <short>\n{variable} = <short>\n{variable} = <short>
    2 {who} said <string>.
  """,
  "string": """
    1 '<words>'
    1 "<words>"
  """,
  "words": """
    4 {string}
    4 {string} {string/string}
    2 {string} {string/string} {string/string}
    1 {string} {string/string} {string/string} {string/string}
  """,
  "short": """
    1 '{string}'
    1 "{string}"
    1 '{string} {string/string}'
    1 "{string} {string/string}"
  """,
  "list": _REPEATED,
  "repeat": """
    2 {name} said that[ <claim>].\n{name/name} said that[=].
    1 {name} said[ '<words>'].\n{name/name} said[=].
    1 {name} said[ "<words>"].\n{name/name} said[=].
    1 {name} met {name/name}.\n{name=name} met {name/name}.
    1 [{variable} =] <short>\n[=] <short>
  """,
  "claim": """
    2 the {person#} {preposition} the {thing%/person} {is#} {last}
    1 the {thing#} {is#} {adverb} {first}
  """,
}


def lines() -> Iterator[tuple[Fraction, str]]:
  """All that `line` derives, with their shares of all lines, which sum to 1."""
  return _derive("line")


def _derive(rule, number=""):
  """The texts without rules that a rule derives, with their shares."""
  alternatives = [
    re.fullmatch(r" *(\d+) (.*)", row, re.DOTALL).groups()
    for row in re.split(r"\n(?= *\d+ )", RULES[rule].rstrip())
    if row.strip()
  ]
  total = sum(int(weight) for weight, _ in alternatives)
  for weight, text in alternatives:
    text = text.replace("#", number) if number else text
    free = [variable for variable in "#%$" if variable in text]
    share = Fraction(int(weight), total * 2 ** len(free))
    for values in itertools.product("01", repeat=len(free)):
      chosen = text
      for variable, value in zip(free, values, strict=True):
        chosen = chosen.replace(variable, value)
      for part, derived in _complete(chosen):
        yield share * part, derived


def _complete(text):
  """The texts that come of a text by deriving its first rule, and so on."""
  match = re.search(r"<(\w+?)([01]?)>", text)
  if match is None:
    yield Fraction(1), text
    return
  name, number = match.groups()
  before, after = text[: match.start()], text[match.end() :]
  rests = list(_complete(after))
  for share, derived in _derive(name + "#" * len(number), number):
    for part, rest in rests:
      yield share * part, before + derived + rest
