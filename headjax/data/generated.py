"""Which corpora need no files? Those that are generated, by name."""

import functools
import types
from collections.abc import Callable, Mapping

from headjax.data.keys import KeyedText, Keys
from headjax.data.phases import KeysThenToy, Phases
from headjax.data.rule_text import RuleText
from headjax.data.rules import FAMILIES
from headjax.data.toy import Toy

Generated = Toy | KeyedText | Phases | RuleText

GENERATED: Mapping[str, Callable[[], Generated]] = types.MappingProxyType(
  {Toy.name: Toy, Keys.name: Keys, KeysThenToy.name: KeysThenToy}
  | {
    f"rules-{family}": functools.partial(RuleText, family)
    for family in FAMILIES
  }
)
