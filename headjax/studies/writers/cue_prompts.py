"""How does a task without demonstrations become a cell? Its cue is flipped.

Agreement, quotes and plurals have no labels to shuffle. What labels are there,
the cue is here: what clean and reference prompts differ in. The control of a
prompt says its cue or the other one with equal chance, so that over the prompts
the cue says nothing of the answer, as shuffled labels do not.
"""

import dataclasses

import numpy as np

from headjax.checks import check, check_choice
from headjax.data.in_context import BUCKETS, Format, InContext
from headjax.data.pairs import PromptPairs
from headjax.data.tasks import TASKS, load_task
from headjax.models.tokenizers import Tokenizer
from headjax.studies.writers.prompts import Prompts

CUE_TASKS = tuple(TASKS)
_SPLITS = ("discovery", "validation", "evaluation")
_NONE = Format("", "", "", "")


def load_cue_cell(
  task: str,
  tokenizer: Tokenizer | None,
  *,
  examples: int | None = None,
  n_shuffles: int = 20,
) -> Prompts:
  """All prompts that a cell of such a task needs.

  Paths are patched on the split "validation"; there is no other name for the
  flip of a prompt than its reference. Prompts have no beginning-of-text token
  and no demonstrations: all tokens are of the kind `query_input`.

  Args:
    task: one of CUE_TASKS.
    tokenizer: of the model.
    examples: at most so many of each set; None means whole splits.
    n_shuffles: how often cues are flipped.

  Raises:
    ValueError: no such task, or what `load_task` refuses.
  """
  check_choice("task", task, CUE_TASKS)
  check(n_shuffles >= 2, "n_shuffles", n_shuffles, "2 or more", "flip more")
  sets = []
  for split in _SPLITS:
    pairs = load_task(task, tokenizer, split=split)
    if examples is not None:
      pairs = pairs.select(slice(min(examples, len(pairs))))
    sets.append(_in_context(pairs))
  discovery, paths, evaluation = sets
  flipped = [flip_cues(discovery.pairs, seed) for seed in range(n_shuffles)]
  return Prompts(discovery, flipped, paths, evaluation)


def flip_cues(pairs: PromptPairs, seed: int) -> PromptPairs:
  """Each prompt or its reference, with equal chance; the answer stays.

  Args:
    pairs: clean and reference prompts.
    seed: of the choices.

  Returns:
    Pairs whose clean prompts are the chosen ones, and whose references are the
    clean prompts of `pairs`.
  """
  chosen = np.random.default_rng(seed).integers(2, size=len(pairs)) == 1
  return dataclasses.replace(
    pairs,
    clean=np.where(chosen[:, None], pairs.reference, pairs.clean),
    reference=pairs.clean,
  )


def _in_context(pairs: PromptPairs) -> InContext:
  """The pairs as prompts of a cell, all tokens of one kind."""
  inside = np.arange(pairs.clean.shape[1]) < pairs.lengths[:, None]
  kinds = np.where(inside, BUCKETS.index("query_input"), -1).astype(np.int8)
  return InContext((), (), _NONE, pairs, kinds)
