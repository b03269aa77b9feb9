"""Does the config of rule texts name a corpus and a model that fit?"""

import pytest
from one_line import refusal

from configs.writers import FAMILIES, get_config
from headjax.data.rule_text import RuleText
from headjax.data.rules import FAMILIES as RULES
from headjax.training import from_config


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sequence_is_whole_lines(family):
  config = get_config(family)
  settings = from_config.settings(config)
  corpus = from_config.corpus(config)
  assert isinstance(corpus, RuleText) and corpus.family == family
  assert settings.model.d_vocab == corpus.d_vocab
  length = settings.model.n_ctx + 1
  corpus.check(length, 1, 1)
  [row] = corpus.validation([0], length)
  assert row[-1] == corpus.tokenizer.single("\n")
  # The study's prompts: the start, four lines, and a query.
  assert settings.model.n_ctx >= 1 + 4 * 6 + 4


def test_every_family_has_a_config():
  assert set(FAMILIES) == set(RULES)
  with refusal("variant: got 'x'; expected one of hierarchical, modular"):
    get_config("x")
