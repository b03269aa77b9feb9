"""How far must the last position move until the other number is preferred?

The preference for a number is the log of the odds of its verbs. Along the axis
of a layer the last position of a prompt is moved step by step, and the smallest
move that reaches a wanted preference is taken. Moves are told in separations,
the distance between the mean coordinates of plural and singular subjects, since
the size of a stream differs between models by orders of magnitude: a bound that
is an absolute number is far too small in one and no bound in another.

Source: paper D's code, whose wanted preference is 1. It solves for the move by
  the slope of a trial of 0.2 and bounds it by 50, in units of the stream.
"""

import jax
import jax.numpy as jnp
import numpy as np

from headjax.interventions import last_row
from headjax.models.decoder import unembed
from headjax.models.load import LoadedModel
from headjax.studies.cores.number_axis import Axis, verb_logits

WANTED = {"plural": 1.0, "singular": -1.0}  # nats
LARGEST, STEPS = 4.0, 16  # separations, and how finely they are tried


class Steering:
  """The next token of some prompts, their last position moved.

  Attributes:
    axis: along which strengths are solved.
  """

  def __init__(self, model: LoadedModel, axis: Axis):
    """Runs nothing yet.

    Args:
      model: with a tokenizer, causal.
      axis: of one of its layers.
    """
    last_row.check_causal(model.config)
    self.model, self.axis = model, axis
    self.verbs = verb_logits(model.tokenizer)

  def look(self, tokens: np.ndarray, lengths: np.ndarray) -> None:
    """Runs `[batch, pos]` prompts, of which `lengths` tokens count, unmoved."""
    self.before = last_row.prepare(
      self.model.model, self.model.params, tokens, lengths
    )

  def strengths(self, wanted: np.ndarray) -> np.ndarray:
    """`[batch]` separations: the smallest moves to wanted preferences.

    0 where the preference is beyond the wanted one already; LARGEST, towards
    it, where even that does not reach it.

    Args:
      wanted: `[batch]` nats, whose signs say in which direction.
    """
    tried = np.linspace(0, LARGEST, STEPS + 1)
    sign = np.sign(wanted)
    moves = self.moves(self.axis, tried[:, None] * sign)
    return sign * first_crossing(
      tried, sign * self.preferences(moves), np.abs(wanted)
    )

  def moves(self, axis: Axis, strengths: np.ndarray) -> np.ndarray:
    """`[..., batch, d_model]`: strengths along an axis, as vectors."""
    distance = np.asarray(strengths) * self.axis.separation
    return distance[..., None] * axis.direction[:, 0]

  def preferences(self, moves: np.ndarray) -> np.ndarray:
    """`[n, batch]` nats: log odds of plural verbs less of singular ones."""
    found = self.verbs(self.model.model, self.model.params, self._final(moves))
    return preference(np.asarray(found, np.float64))

  def log_probabilities(self, moves: np.ndarray) -> np.ndarray:
    """`[n, batch, 4]` nats: of the verbs of `verb_logits`, among all tokens."""
    final = self._final(moves)
    model, params = self.model.model, self.model.params
    total = jax.nn.logsumexp(unembed(model, params, final), axis=-1)
    found = self.verbs(model, params, final)
    return np.asarray(found, np.float64) - np.asarray(total)[..., None]

  def logits(self, moves: np.ndarray) -> jax.Array:
    """`[n, batch, vocab]`."""
    return unembed(self.model.model, self.model.params, self._final(moves))

  def _final(self, moves):
    streams = self.before.streams[self.axis.layer]
    rows = streams[None] + jnp.asarray(moves, streams.dtype)
    return last_row.finish(
      self.model.model, self.model.params, self.before, self.axis.layer, rows
    )


def preference(logits: np.ndarray) -> np.ndarray:
  """The log odds of the plural.

  Args:
    logits: `[..., 4]`, of `verb_logits`: two plural verbs, two singular ones.
  """
  plural, singular = np.split(logits, 2, axis=-1)
  return np.logaddexp.reduce(plural, -1) - np.logaddexp.reduce(singular, -1)


def first_crossing(
  tried: np.ndarray, found: np.ndarray, wanted: np.ndarray
) -> np.ndarray:
  """`[batch]`: where curves first reach a height, between tried points.

  Args:
    tried: `[n]`, ascending from 0.
    found: `[n, batch]`, the heights there.
    wanted: `[batch]`.

  Returns:
    0 where the first point is as high, the last tried one where none is.
  """
  reached = found >= wanted
  end = np.where(reached.any(0), reached.argmax(0), len(tried) - 1)
  start, column = np.maximum(end - 1, 0), np.arange(found.shape[1])
  low, high = found[start, column], found[end, column]
  rise = np.where(high > low, high - low, 1.0)
  part = np.clip((wanted - low) / rise, 0, 1)
  between = tried[start] + part * (tried[end] - tried[start])
  return np.where(reached.any(0), between, tried[-1])
