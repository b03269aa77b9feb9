"""Which prompts does each step of the study see? Sets of them, by task.

Rule tasks have references of their own, the rule flips; the references of the
lexical tasks show the same words without their relation. Both are read with
the tokenizer at hand.
"""

import dataclasses
import types
from collections.abc import Mapping

from headjax.checks import check, check_choice
from headjax.data.in_context import (
  LINES,
  QUESTIONS,
  SPACED_WORDS,
  WORDS,
  InContext,
  encode,
  with_shuffled_labels,
)
from headjax.data.lexical import LISTS, choose_format, lexical_examples
from headjax.data.pairs import PromptPairs
from headjax.data.rules import FAMILIES, rule_examples
from headjax.data.tasks import check_tokenizer
from headjax.models.tokenizers import Tokenizer

TASKS = (*FAMILIES, *LISTS)
# Purpose -> prompts of a rule task. Source: paper C.
SIZES: Mapping[str, int] = types.MappingProxyType(
  {"discovery": 192, "paths": 200, "evaluation": 500, "means": 96}
)
LEXICAL_SIZE = 100
QUESTION_SHOTS = 10


@dataclasses.dataclass(frozen=True)
class Prompts:
  """All prompts of a cell.

  Attributes:
    discovery: whose attributions are tested.
    shuffled: the same with shuffled labels, several times.
    paths: clean prompts and their rule flips.
    evaluation: for the lesions.
  """

  discovery: InContext
  shuffled: list[PromptPairs]
  paths: InContext
  evaluation: InContext


def load_cell(
  task: str,
  tokenizer: Tokenizer | None,
  *,
  examples: int | None = None,
  n_shuffles: int = 20,
) -> Prompts:
  """All prompts that a cell needs.

  Args:
    task: one of TASKS.
    tokenizer: of the model.
    examples: at most so many of each set; None means as many as the paper.
    n_shuffles: how often labels are shuffled.

  Raises:
    ValueError: as in `load_prompts`.
  """

  def load(purpose: str) -> InContext:
    count = _count(task, purpose, None)
    count = count if examples is None else min(count, examples)
    return load_prompts(task, tokenizer, purpose=purpose, examples=count)

  _check(task, tokenizer, "discovery")
  check(
    examples is None or examples >= 2,
    "examples",
    examples,
    "2 or more",
    "ask for more",
  )
  check(n_shuffles >= 2, "n_shuffles", n_shuffles, "2 or more", "shuffle more")
  discovery = load("discovery")
  return Prompts(
    discovery,
    shuffles(discovery, tokenizer, n_shuffles),
    load("paths"),
    load("evaluation"),
  )


def load_prompts(
  task: str,
  tokenizer: Tokenizer | None,
  *,
  purpose: str = "discovery",
  examples: int | None = None,
  shots: int = 4,
) -> InContext:
  """The prompts of a task for one step, the same on every machine.

  Args:
    task: one of TASKS.
    tokenizer: of the model that will be measured.
    purpose: one of SIZES; no two of them share their draws.
    examples: how many; None means as many as the paper.
    shots: demonstrations of each.

  Raises:
    ValueError: no such task or purpose, or a tokenizer that does not write
      answers as one token.

  Source: paper C. Lexical prompts are `a:b a:b q:`; where the tokenizer has too
    few labels of one token without a space before them, `a: b` in lines.
  """
  _check(task, tokenizer, purpose)
  count = _count(task, purpose, examples)
  if task in FAMILIES:
    clean, reference = rule_examples(task, count, purpose, shots=shots)
    form = LINES
  else:
    form, pairs = choose_format(task, tokenizer, (WORDS, SPACED_WORDS))
    clean, reference = lexical_examples(
      task, pairs, count, purpose, shots=shots
    )
  return encode(clean, reference, form, tokenizer, name=task, split=purpose)


def load_questions(
  task: str,
  tokenizer: Tokenizer | None,
  *,
  purpose: str = "discovery",
  examples: int = 100,
  shots: int = QUESTION_SHOTS,
) -> InContext:
  """The same tasks as questions and answers, with ten demonstrations.

  Args:
    task: one of TASKS.
    tokenizer: of the model.
    purpose: one of SIZES.
    examples: how many.
    shots: demonstrations of each.

  Source: Todd et al. (2024), their prompts and numbers; the words are ours.
  """
  _check(task, tokenizer, purpose)
  which = ("questions", purpose)
  if task in FAMILIES:
    clean, reference = rule_examples(task, examples, *which, shots=shots)
  else:
    _, pairs = choose_format(task, tokenizer, (QUESTIONS,))
    clean, reference = lexical_examples(
      task, pairs, examples, *which, shots=shots
    )
  return encode(
    clean, reference, QUESTIONS, tokenizer, name=task, split=purpose
  )


def shuffles(
  prompts: InContext, tokenizer: Tokenizer, count: int = 20
) -> list[PromptPairs]:
  """The prompts with shuffled labels, as often as asked for.

  Args:
    prompts: whose labels to shuffle; they are the references.
    tokenizer: of the model.
    count: shuffles.
  """
  return [
    with_shuffled_labels(prompts, tokenizer, seed).pairs
    for seed in range(count)
  ]


def _check(task, tokenizer, purpose):
  check_choice("task", task, TASKS)
  check_choice("purpose", purpose, SIZES)
  check_tokenizer(tokenizer)


def _count(task, purpose, examples):
  if examples is None:
    return SIZES[purpose] if task in FAMILIES else LEXICAL_SIZE
  check(examples >= 1, "examples", examples, "at least 1", "ask for some")
  return examples
