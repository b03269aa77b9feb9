"""What does a model write while its number is turned over at every step?

At each new token the last position is moved along an axis, just so far that the
model prefers the verbs of the number that is wanted. The control moves it as
far along a random direction.

Source: paper D's code, but for how the strength is found; see `steering`.
"""

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check, check_choice
from headjax.interventions.sweep import PRECISION
from headjax.models import sampling
from headjax.models.load import LoadedModel
from headjax.models.prompts import bucket, check_prompts
from headjax.studies.cores.number_axis import Axis
from headjax.studies.cores.steering import WANTED, Steering


def continue_as(
  model: LoadedModel,
  axis: Axis,
  prompt: str,
  number: str,
  *,
  along: Axis | None,
  verb_first: bool = False,
  max_new: int = 50,
  temperature: float = 1.0,
  top_k: int = 50,
  seed: int = 0,
) -> tuple[str, np.ndarray]:
  """A continuation that holds the preference at one number.

  Args:
    model: with a tokenizer.
    axis: on which the strengths are solved.
    prompt: the text that is continued.
    number: "plural" or "singular".
    along: what the last position moves along: the same axis, another one of
      its layer as the control, or None, which moves nothing.
    verb_first: whether the first token is drawn among the verbs alone, where
      a model would seldom write one.
    max_new: tokens to add.
    temperature: of the draws.
    top_k: only among the so many likeliest tokens.
    seed: of the draws.

  Returns:
    The new text, and the strengths `[max_new]` that were used, in separations.
  """
  check_choice("number", number, WANTED)
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
  steer, strengths = Steering(model, axis), np.zeros(max_new)
  with jax.default_matmul_precision(PRECISION):
    for t in range(max_new):
      end = len(ids) + t
      steer.look(tokens, np.array([end]))
      if along is not None:
        [strengths[t]] = steer.strengths(np.array([WANTED[number]]))
      move = steer.moves(along or axis, strengths[t : t + 1])
      logits = steer.logits(move[None])[0]
      if verb_first and t == 0:
        verb = np.zeros(logits.shape[-1], bool)
        verb[np.asarray(steer.verbs.tokens)] = True
        logits = jnp.where(verb[None], logits, -jnp.inf)
      token = sampling.draw(
        logits,
        jnp.uint32(seed), jnp.int32(t), jnp.float32(temperature), top_k,
      )  # fmt: skip
      tokens[0, end] = int(token[0])
  text = tokenizer.decode(tokens[0, len(ids) : len(ids) + max_new].tolist())
  return text, strengths
