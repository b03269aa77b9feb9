"""What is shown to a model that has to find a rule itself? Examples, a query.

A prompt is made of pieces, and every token knows which kind of piece it is
from, so that attention and attribution can be summed by what they look at.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headjax.checks import check
from headjax.data.pairs import PromptPairs, pad_right
from headjax.data.stream import shuffled
from headjax.data.templates import next_token
from headjax.models.tokenizers import Tokenizer
from headjax.outline import of_fields, table_of_fields

# Of a token that is from two pieces, the later of these counts.
BUCKETS = ("bos", "format", "demo_input", "demo_label", "query_input")
# These are format wherever they stand.
_SEPARATORS = ",:\n "


class Format(NamedTuple):
  """What stands around inputs and labels.

  Attributes:
    before: an input.
    inside: between an input and its label, and at the end of a prompt.
    lead: what a label begins with.
    after: between two demonstrations.
  """

  before: str
  inside: str
  lead: str
  after: str


LINES = Format("", ",", "", "\n")
WORDS = Format("", ":", "", " ")
SPACED_WORDS = Format("", ":", " ", "\n")
QUESTIONS = Format("Q: ", "\nA:", " ", "\n\n")


@dataclasses.dataclass(frozen=True)
class Example:
  """Demonstrations, and what is asked.

  Attributes:
    demonstrations: input and label of each.
    query: the input whose label is asked for.
    answer: its label.
    foil: the label that it is compared with.
    group: what the example belongs to, such as its rule.
  """

  demonstrations: tuple[tuple[str, str], ...]
  query: str
  answer: str
  foil: str
  group: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class InContext:
  """Prompts with demonstrations, as text and as ids.

  Attributes:
    examples: of the clean prompts.
    references: of the reference prompts.
    format: of all of them.
    pairs: their ids; answer and foil are those of the clean prompt.
    buckets: `[example, pos]` int8, which of BUCKETS a token of the clean
      prompt is from; -1 beyond its end.
  """

  examples: tuple[Example, ...] = dataclasses.field(repr=False)
  references: tuple[Example, ...] = dataclasses.field(repr=False)
  format: Format
  pairs: PromptPairs
  buckets: np.ndarray

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def __len__(self) -> int:
    return len(self.examples)


def encode(
  examples: Sequence[Example],
  references: Sequence[Example],
  form: Format,
  tokenizer: Tokenizer,
  *,
  name: str,
  split: str = "",
  bos: bool = True,
) -> InContext:
  """Writes examples as prompts.

  Args:
    examples: of the clean prompts.
    references: of the reference prompts, in the same order.
    form: what stands around inputs and labels.
    tokenizer: of the model.
    name: of the task.
    split: which part of it.
    bos: whether a prompt begins with the tokenizer's token for that, if it has
      one.

  Raises:
    ValueError: an answer that is not one token in its place, or a reference
      prompt of another length.
  """
  start = [] if tokenizer.bos is None or not bos else [tokenizer.bos]
  clean, buckets = zip(
    *(_ids(e, form, tokenizer) for e in examples), strict=True
  )
  reference = [_ids(e, form, tokenizer)[0] for e in references]
  for example, own, other in zip(examples, clean, reference, strict=True):
    check(
      len(own) == len(other),
      f"task {name}",
      f"{len(other)} tokens in the reference of {text(example, form)!r}",
      f"{len(own)}, as in the prompt",
      "use labels of one token each",
    )
  answers = [_answers(e, form, tokenizer, name) for e in examples]
  ids, lengths = pad_right([start + row for row in clean])
  kinds = np.full(ids.shape, -1, np.int8)
  for row, own in zip(kinds, buckets, strict=True):
    row[: len(start)] = BUCKETS.index("bos")
    row[len(start) : len(start) + len(own)] = own
  pairs = PromptPairs(
    ids,
    pad_right([start + row for row in reference])[0],
    *np.array(answers, np.int32).T,
    lengths,
    name=name,
    split=split,
    group=np.array([example.group for example in examples]),
  )
  return InContext(tuple(examples), tuple(references), form, pairs, kinds)


def with_shuffled_labels(
  prompts: InContext, tokenizer: Tokenizer, seed: int, *, bos: bool = True
) -> InContext:
  """The same prompts, the labels of each one's demonstrations in any order.

  Args:
    prompts: what to shuffle; they become the references.
    tokenizer: of the model.
    seed: of the orders.
    bos: as in `encode`.
  """
  examples = [
    shuffle_labels(example, prompts.pairs.name, prompts.pairs.split, seed, i)
    for i, example in enumerate(prompts.examples)
  ]
  return encode(
    examples,
    prompts.examples,
    prompts.format,
    tokenizer,
    name=prompts.pairs.name,
    split=prompts.pairs.split,
    bos=bos,
  )


def shuffle_labels(example: Example, *labels: str | int) -> Example:
  """An example whose demonstrations have exchanged labels.

  Args:
    example: what to shuffle; query, answer and foil stay.
    labels: what the draw is for.
  """
  inputs = [given for given, _ in example.demonstrations]
  names = [label for _, label in example.demonstrations]
  order = shuffled([str(i) for i in range(len(names))], "labels", *labels)
  mixed = tuple(zip(inputs, (names[int(i)] for i in order), strict=True))
  return dataclasses.replace(example, demonstrations=mixed)


def text(example: Example, form: Format) -> str:
  """The prompt of an example, up to where its answer goes."""
  return "".join(part for part, _ in _pieces(example, form))


def _pieces(example: Example, form: Format) -> list[tuple[str, str]]:
  """The parts of a prompt, each with its bucket."""
  found = []
  for given, label in example.demonstrations:
    found += [
      (form.before, "format"),
      (given, "demo_input"),
      (form.inside, "format"),
      (form.lead + label, "demo_label"),
      (form.after, "format"),
    ]
  return [
    *found,
    (form.before, "format"),
    (example.query, "query_input"),
    (form.inside, "format"),
  ]


def _ids(example, form, tokenizer) -> tuple[list[int], list[int]]:
  """The ids of a prompt and the bucket of each."""
  kinds = []
  for part, bucket in _pieces(example, form):
    kinds += [
      BUCKETS.index("format" if character in _SEPARATORS else bucket)
      for character in part
    ]
  done = tokenizer.backend.encode(text(example, form), add_special_tokens=False)
  # A part of a character is a token without width.
  return done.ids, [max(kinds[a : max(b, a + 1)]) for a, b in done.offsets]


def _answers(example, form, tokenizer, name) -> list[int]:
  """The ids of answer and foil, each one token in its place."""
  context, found = text(example, form), []
  for label in (example.answer, example.foil):
    found.append(next_token(tokenizer, context, form.lead + label))
    check(
      found[-1] is not None,
      f"task {name}",
      f"label {form.lead + label!r} after {context[-24:]!r}, which is not one "
      "token of its own",
      "labels of one token",
      "use another tokenizer or other words",
    )
  check(
    found[0] != found[1],
    f"task {name}",
    f"answer and foil {example.answer!r}",
    "two different labels",
    "choose another foil",
  )
  return found
