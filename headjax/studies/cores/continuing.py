"""What does a model write while its number is turned over at every step?

At each new token the last position is moved along an axis, just so far that the
model prefers the verbs of the number that is wanted: how far a unit moves the
preference is tried out first. The same with a random direction is the control.

Source: paper D's code: strengths to 50, a trial of 0.2, a wanted margin of 1.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check, check_choice
from headjax.interventions import last_row
from headjax.interventions.sweep import PRECISION
from headjax.models import sampling
from headjax.models.decoder import unembed
from headjax.models.load import LoadedModel
from headjax.models.prompts import bucket, check_prompts
from headjax.studies.cores.number_axis import Axis, verb_tokens

TRIAL, LARGEST, WANTED = 0.2, 50.0, 1.0
NUMBERS = {"plural": WANTED, "singular": -WANTED}


def continue_as(
  model: LoadedModel,
  axis: Axis | None,
  prompt: str,
  number: str,
  *,
  max_new: int = 50,
  temperature: float = 1.0,
  top_k: int = 50,
  seed: int = 0,
) -> tuple[str, np.ndarray]:
  """A continuation that holds the preference at one number.

  Args:
    model: with a tokenizer.
    axis: along which the last position moves; None moves nothing.
    prompt: the text that is continued.
    number: "plural" or "singular".
    max_new: tokens to add.
    temperature: of the draws.
    top_k: only among the so many likeliest tokens.
    seed: of the draws.

  Returns:
    The new text, and the strengths `[max_new]` that were used.
  """
  check_choice("number", number, NUMBERS)
  check(temperature > 0, "temperature", temperature, "more than 0", "raise it")
  check(max_new >= 1, "max_new", max_new, "at least 1", "ask for some tokens")
  tokenizer, config = model.tokenizer, model.config
  check(
    1 <= top_k <= config.d_vocab,
    "top_k",
    top_k,
    f"1 to {config.d_vocab}, the vocabulary",
    "choose a number within it",
  )
  ids = tokenizer.encode(prompt)  # as the task's prompts are
  check_prompts(config, np.array([ids]), room=max_new)
  width = bucket(len(ids) + max_new, config.n_ctx)
  tokens = np.zeros((1, width), np.int32)
  tokens[0, : len(ids)] = ids
  steer = _Steering(model, axis)
  verbs = {k: np.array(v) for k, v in verb_tokens(tokenizer).items()}
  strengths = np.zeros(max_new)
  with jax.default_matmul_precision(PRECISION):
    for t in range(max_new):
      end = len(ids) + t
      steer.look(tokens, end)
      logits = steer.logits([0.0])
      if axis is not None:
        tried = steer.logits([0.0, TRIAL])
        preferred = [_preference(row, verbs) for row in tried]
        strengths[t] = strength_for(*preferred, NUMBERS[number])
        logits = steer.logits([strengths[t]])
      token = sampling.draw(
        logits, jnp.uint32(seed), jnp.int32(t), jnp.float32(temperature), top_k
      )
      tokens[0, end] = int(token[0])
  text = tokenizer.decode(tokens[0, len(ids) : len(ids) + max_new].tolist())
  return text, strengths


class _Steering:
  """The next token's logits, with the last position moved along an axis."""

  def __init__(self, model: LoadedModel, axis: Axis | None):
    last_row.check_causal(model.config)
    self.model = model
    self.layer = 0 if axis is None else axis.layer
    zero = np.zeros(model.config.d_model)
    self.direction = zero if axis is None else axis.direction[:, 0]

  def look(self, tokens: np.ndarray, end: int) -> None:
    """Runs the first `end` of `[1, pos]` tokens, unmoved."""
    self.before = last_row.prepare(
      self.model.model, self.model.params, tokens, np.array([end])
    )

  def logits(self, strengths: list[float]) -> jax.Array:
    """`[strength, vocab]`."""
    moves = np.array(strengths)[:, None, None] * self.direction
    rows = self.before.streams[self.layer][None] + jnp.asarray(
      moves, self.before.streams.dtype
    )
    model, params = self.model.model, self.model.params
    resid = last_row.finish(model, params, self.before, self.layer, rows)
    return unembed(model, params, resid[:, 0])


def strength_for(before: float, tried: float, wanted: float) -> float:
  """How far to move, by the slope that a trial shows; at most LARGEST.

  Args:
    before: the preference unmoved.
    tried: after moving by TRIAL.
    wanted: the preference to reach.
  """
  slope = (tried - before) / TRIAL
  if slope == 0:
    return 0.0
  return float(np.clip((wanted - before) / slope, -LARGEST, LARGEST))


def _preference(logits: Any, verbs: dict[str, np.ndarray]) -> float:
  """log(sum of plural odds) - log(sum of singular odds), nats."""
  row = np.asarray(logits, np.float64)
  plural, singular = (
    np.logaddexp.reduce(row[verbs[number]]) for number in ("plural", "singular")
  )
  return float(plural - singular)
