"""How do word lists become balanced prompt pairs? One generator for all.

A template crosses two factors with two levels each. An example draws its words
from the part of every list that belongs to its split, is written at one of the
four conditions, and is paired with the same words at the other level of one of
the factors.
"""

import dataclasses
import types
from collections.abc import Callable, Mapping

import numpy as np

from headjax.checks import check, check_choice, fail
from headjax.data.pairs import PromptPairs, pad_right
from headjax.data.stream import draw, shuffled
from headjax.models.tokenizers import Tokenizer
from headjax.outline import of_fields, table_of_fields

# Examples per split.
SPLITS: Mapping[str, int] = types.MappingProxyType(
  {"discovery": 300, "validation": 240, "evaluation": 240, "holdout": 32}
)

_FIX = "use another tokenizer, or a JSONL file of your own pairs"

# A word, or its two forms.
Word = str | tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Pool:
  """A list of words, and how much of it each split owns.

  Attributes:
    words: distinct words; a pair holds the forms at level 0 and level 1.
    sizes: words per split, in the order of SPLITS; None shares them all. A
      split owns a part of the list in proportion, and uses its first words.
    after: (context, lead) pairs: written as lead + word after each context,
      every form of a usable word is one token.
  """

  words: tuple[Word, ...]
  sizes: tuple[int, ...] | None = None
  after: tuple[tuple[str, str], ...] = (("The", " "),)

  __repr__ = of_fields
  _repr_html_ = table_of_fields


@dataclasses.dataclass(frozen=True)
class Template:
  """A task made of word lists; calling it makes the pairs of one split.

  Attributes:
    name: of the task.
    pools: word lists by name.
    slots: pool of each word of a prompt; slots of one pool never share a word.
    group: the slot whose word is the lexical group.
    prompt: (words by slot, level of factor 0, level of factor 1) -> text.
    answers: words by slot -> next text at either level of the flipped factor.
    flipped: the factor, 0 or 1, that the reference prompt has at its other
      level.
  """

  name: str
  pools: Mapping[str, Pool]
  slots: Mapping[str, str]
  group: str
  prompt: Callable[[Mapping[str, Word], int, int], str] = dataclasses.field(
    repr=False
  )
  answers: Callable[[Mapping[str, Word]], tuple[str, str]] = dataclasses.field(
    repr=False
  )
  flipped: int

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def __call__(self, tokenizer: Tokenizer, split: str) -> PromptPairs:
    """All examples of a split; condition = 2 * level 0 + level 1.

    Conditions alternate, and groups change every fourth example, so that any
    first examples are balanced too.

    Raises:
      ValueError: if the tokenizer leaves too few words of a list.
    """
    words = self.words(tokenizer, split)
    groups = words[self.slots[self.group]]
    rows, seen = [], set()
    for example in range(SPLITS[split]):
      group = groups[_group(example, SPLITS[split], len(groups))]
      levels = divmod(example % 4, 2)
      chosen = self._choose(words, group, levels, (split, example), seen)
      rows.append(self._encode(tokenizer, chosen, levels) | {"group": group})
    return self._collect(rows, split)

  def words(self, tokenizer: Tokenizer, split: str) -> dict[str, list[Word]]:
    """The words of every pool that the prompts of a split draw from.

    Args:
      tokenizer: which words it writes as one token decides.
      split: one of SPLITS.

    Raises:
      ValueError: if the tokenizer leaves too few words of a list.
    """
    check_choice("split", split, SPLITS)
    return {
      name: _share(self.name, name, pool, tokenizer, split)
      for name, pool in self.pools.items()
    }

  def _choose(self, words, group, levels, labels, seen):
    """Words by slot that make a prompt which no earlier example has."""
    for attempt in range(1000):
      chosen = {self.group: group}
      for slot, pool in self.slots.items():
        if slot != self.group:
          left = [w for w in words[pool] if w not in chosen.values()]
          i = draw(len(left), self.name, *labels, slot, attempt)
          chosen[slot] = left[i]
      text = self.prompt(chosen, *levels)
      if text not in seen:
        seen.add(text)
        return chosen
    fail(
      f"task {self.name}",
      f"{len(seen)} distinct prompts",
      f"{SPLITS[labels[0]]} in split {labels[0]}",
      "give its lists more words",
    )

  def _encode(self, tokenizer, chosen, levels):
    """The ids of one example, by field of the pairs."""
    other = tuple(v ^ (i == self.flipped) for i, v in enumerate(levels))
    text = self.prompt(chosen, *levels)
    clean = tokenizer.encode(text)
    reference = tokenizer.encode(self.prompt(chosen, *other))
    differing = sum(a != b for a, b in zip(clean, reference, strict=False))
    check(
      len(clean) == len(reference) and differing == 1,
      f"task {self.name}",
      f"{len(clean)} and {len(reference)} tokens, {differing} of which "
      f"differ, in {text!r} and its reference",
      "prompts that differ in exactly one token",
      _FIX,
    )
    nexts = [next_token(tokenizer, text, a) for a in self.answers(chosen)]
    check(
      None not in nexts,
      f"task {self.name}",
      f"answers {self.answers(chosen)} after {text!r}",
      "answers of one token each",
      _FIX,
    )
    level = levels[self.flipped]
    return {
      "clean": clean,
      "reference": reference,
      "answer": nexts[level],
      "foil": nexts[1 - level],
      "condition": 2 * levels[0] + levels[1],
    }

  def _collect(self, rows, split):
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    clean, lengths = pad_right(columns["clean"])
    reference, _ = pad_right(columns["reference"])
    return PromptPairs(
      clean,
      reference,
      np.array(columns["answer"]),
      np.array(columns["foil"]),
      lengths,
      name=self.name,
      split=split,
      group=np.array([_label(word) for word in columns["group"]]),
      condition=np.array(columns["condition"]),
    )


def next_token(tokenizer: Tokenizer, context: str, text: str) -> int | None:
  """The id of a text that is exactly one known token after a context."""
  before, ids = tokenizer.encode(context), tokenizer.encode(context + text)
  if ids[:-1] != before or text.strip() not in tokenizer.decode(ids[-1:]):
    return None
  return ids[-1]


def _group(example, n_examples, n_groups):
  """The group of an example: equally many examples each, if that is possible.

  A condition's examples go round the groups; where they do not come out even,
  the next condition gives its extra examples to the groups that follow.
  """
  rounds, condition = divmod(example, 4)
  return (rounds + condition * (n_examples // 4)) % n_groups


def _share(task, name, pool, tokenizer, split):
  """The words of a pool that a split draws from.

  The whole list is cut into the splits' parts before the tokenizer is asked,
  so that no word changes its split from one tokenizer to the next.
  """
  part, needed = pool.words, min(2, len(pool.words))
  if pool.sizes is not None:
    index = list(SPLITS).index(split)
    needed = pool.sizes[index]
    ends = np.cumsum((0, *pool.sizes)) * len(part) // sum(pool.sizes)
    part = shuffled(part, task, name)[ends[index] : ends[index + 1]]
  usable = [word for word in part if _is_usable(pool, word, tokenizer)]
  if len(usable) < needed:
    failed = [_label(word) for word in part if word not in usable]
    more = f" and {len(failed) - 12} more" if len(failed) > 12 else ""
    fail(
      f"task {task}, split {split}, words for {name}",
      f"{len(usable)} of {len(part)} that tokenizer {tokenizer.name} writes "
      f"as one token (not {', '.join(failed[:12])}{more})",
      f"at least {needed}",
      _FIX,
    )
  return usable if pool.sizes is None else usable[:needed]


def _is_usable(pool, word, tokenizer):
  forms = (word,) if isinstance(word, str) else word
  ids = [
    [next_token(tokenizer, context, lead + form) for form in forms]
    for context, lead in pool.after
  ]
  return all(None not in row and len(set(row)) == len(forms) for row in ids)


def _label(word):
  """The singular of a pair of forms, or the word itself."""
  return word if isinstance(word, str) else word[0]
