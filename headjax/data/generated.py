"""Which corpora need no files? Those that are generated, by name."""

import functools
import types
from collections.abc import Callable, Mapping

from headjax.data.rule_text import RuleText
from headjax.data.rules import FAMILIES
from headjax.data.toy import Toy

GENERATED: Mapping[str, Callable[[], Toy | RuleText]] = types.MappingProxyType(
  {Toy.name: Toy}
  | {
    f"rules-{family}": functools.partial(RuleText, family)
    for family in FAMILIES
  }
)
