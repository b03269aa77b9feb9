"""Which direction at the last token separates plural from singular subjects?

Prompts end where the verb follows, with a noun of the other number between the
subject and the verb. At the last token of every layer the core of the margin
between plural and singular verbs is one direction.
"""

import dataclasses
from collections.abc import Iterator

import jax
import numpy as np

from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.geometry.cores import random_core
from headjax.interventions import chunks, last_row
from headjax.interventions.projections import project
from headjax.interventions.sweep import PRECISION
from headjax.models.load import LoadedModel
from headjax.models.prompts import check_prompts
from headjax.models.sites import Edits
from headjax.models.tokenizers import Tokenizer
from headjax.studies.cores.extract import extract
from headjax.studies.cores.outputs import (
  Outputs,
  logits_of,
  margin,
  outputs_under,
)

EXAMPLES = 64  # at once
VERBS = {"plural": (" are", " were"), "singular": (" is", " was")}
SINGULAR_SUBJECT, PLURAL_SUBJECT = 1, 2  # conditions with another attractor


def with_attractor(pairs: PromptPairs) -> PromptPairs:
  """The prompts whose attractor has the other number."""
  check(
    pairs.condition is not None,
    "pairs",
    "no conditions",
    "pairs of the sva task",
    "load them with load_task",
  )
  rows = np.isin(pairs.condition, (SINGULAR_SUBJECT, PLURAL_SUBJECT))
  return pairs.select(np.flatnonzero(rows))


def is_plural(pairs: PromptPairs) -> np.ndarray:
  """`[example]` bool: whether the subject is plural."""
  return pairs.condition == PLURAL_SUBJECT


def verb_tokens(tokenizer: Tokenizer) -> dict[str, list[int]]:
  """The ids of the verbs of either number, each one token.

  Raises:
    ValueError: a verb is several tokens.
  """
  found = {}
  for number, words in VERBS.items():
    ids = [tokenizer.single(word) for word in words]
    check(
      None not in ids,
      "tokenizer",
      f"{dict(zip(words, ids, strict=True))}",
      "one known token a verb",
      "use another model",
    )
    found[number] = ids
  return found


def verb_margin(tokenizer: Tokenizer) -> Outputs:
  """The logits of plural verbs less those of singular ones."""
  ids = verb_tokens(tokenizer)
  return margin(ids["plural"], ids["singular"])


def verb_logits(tokenizer: Tokenizer) -> Outputs:
  """The logits of the two plural verbs, then those of the singular ones."""
  ids = verb_tokens(tokenizer)
  return logits_of([*ids["plural"], *ids["singular"]])


@dataclasses.dataclass(frozen=True, eq=False)
class Axis:
  """The core of one layer at the last token, and its mean.

  Attributes:
    layer: whose output it is.
    direction: `[d_model, 1]`, towards the plural.
    mean: `[d_model]`, of the prompts that it was found on.
    size: its singular value.
    separation: how far apart plural and singular subjects lie on it, on
      average, in those prompts; in units of the stream.
  """

  layer: int
  direction: np.ndarray
  mean: np.ndarray
  size: float
  separation: float

  def coordinates(self, streams: np.ndarray) -> np.ndarray:
    """`[example]`: where prompts lie on the axis, given `last_streams`."""
    return (streams[self.layer] - self.mean) @ self.direction[:, 0]

  def projected(self, streams: np.ndarray, kind: str) -> np.ndarray:
    """`[example, d_model]`: the layer's streams after `edit`."""
    h = streams[self.layer] - self.mean
    on = (h @ self.direction) @ self.direction.T
    changed = {"keep": on, "remove": h - on, "flip": h - 2 * on}
    return self.mean + changed[kind]

  def moved_as_far(self, streams: np.ndarray, other: "Axis") -> np.ndarray:
    """`[example, d_model]`: moved along another axis by the flip's distance."""
    distance = -2 * self.coordinates(streams)
    return streams[self.layer] + distance[:, None] * other.direction[:, 0]

  def edit(self, model: LoadedModel, kind: str) -> Edits:
    """The projection around the mean."""
    return project(
      model.config, self.layer, self.direction, kind, mean=self.mean
    )


def last_streams(model: LoadedModel, pairs: PromptPairs) -> np.ndarray:
  """`[layer, example, d_model]`: every layer's output at the last token."""
  found = []
  with jax.default_matmul_precision(PRECISION):
    for before, _, size in prepared(model, pairs):
      found.append(np.asarray(before.streams, np.float64)[:, :size])
  return np.concatenate(found, axis=1)


def margins_after(
  model: LoadedModel, pairs: PromptPairs, rows: np.ndarray
) -> np.ndarray:
  """`[layer, n, example]` nats: the margins if layers gave other streams.

  Args:
    model: with a tokenizer, causal.
    pairs: the prompts.
    rows: `[layer, n, example, d_model]`, each by itself in place of that
      layer's output at the last token.
  """
  ask, parts = verb_margin(model.tokenizer), []
  with jax.default_matmul_precision(PRECISION):
    for before, index, size in prepared(model, pairs):
      found = []
      for layer, x in enumerate(rows):
        resid = last_row.finish(
          model.model, model.params, before, layer, x[:, index]
        )
        found.append(ask(model.model, model.params, resid))
      parts.append(np.asarray(found, np.float64)[..., :size, 0])
  return np.concatenate(parts, axis=-1)


def prepared(
  model: LoadedModel, pairs: PromptPairs
) -> Iterator[tuple[last_row.Before, np.ndarray, int]]:
  """Yields the clean run of some prompts, which they are, and how many."""
  last_row.check_causal(model.config)
  tokens, lengths = check_prompts(model.config, pairs.clean, pairs.lengths)
  for index, place in chunks.slices(len(tokens), min(EXAMPLES, len(tokens))):
    before = last_row.prepare(
      model.model, model.params, tokens[index], lengths[index]
    )
    yield before, index, place.stop - place.start


def axes(model: LoadedModel, train: PromptPairs) -> list[Axis]:
  """The axis of every layer, found on some prompts.

  Args:
    model: with a tokenizer.
    train: prompts with attractors.
  """
  found = extract(
    model, train.clean, verb_margin(model.tokenizer), lengths=train.lengths
  )
  streams = last_streams(model, train)
  plural, layers = is_plural(train), []
  for layer, one in enumerate(found):
    check(
      len(one.core.singular_values) > 0,
      f"layer {layer}",
      "no direction that varies and moves the margin",
      "one",
      "use more prompts, or another model",
    )
    direction, size = one.core.span(1), float(one.core.singular_values[0])
    z = (streams[layer] @ direction)[:, 0]
    apart = float(z[plural].mean() - z[~plural].mean())
    if apart < 0:
      direction, apart = -direction, -apart
    layers.append(Axis(layer, direction, one.mean, size, apart))
  return layers


def random_axis(axis: Axis, seed: int) -> Axis:
  """Another direction at the same place, the control."""
  direction = random_core(len(axis.direction), 1, seed)
  return dataclasses.replace(axis, direction=direction)


def margins(
  model: LoadedModel, pairs: PromptPairs, edits: Edits = Edits()
) -> np.ndarray:
  """`[example]` nats: plural less singular, under an edit of the last token."""
  found = outputs_under(
    model, pairs.clean, verb_margin(model.tokenizer), edits,
    lengths=pairs.lengths,
  )  # fmt: skip
  return found[:, 0].astype(np.float64)
