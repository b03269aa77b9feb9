r"""What does leakage cost beyond its two forwards?

Timed in turn, on the same chunks: the two forwards alone, and the pass that
also sums up every head's changes. `times_its_forwards` is the ratio of their
medians. What then follows from the weights and these sums, the read spaces and
the energy that each head leaves in each of them, does not grow with the
prompts: `weights_s`, and as a part of one measurement `whole_times`.

  python experiments/benchmarks/leakage.py [--model smollm2-135m --task sva]

Without a model, prompts of 6 random tokens that differ in the second are run
through a random model of the shape of GPT-2 small.
"""

import functools
import json
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

from experiments.benchmarks.measure import PeakMemory
from headjax import (
  LoadedModel,
  PromptPairs,
  command_line,
  load_model,
  load_task,
)
from headjax.checks import check
from headjax.interventions.chunks import GIB
from headjax.interventions.leakage import change_covariance, leakage
from headjax.interventions.pooling import pooled
from headjax.interventions.sweep import at_answer
from headjax.models.compiling import fast_jit
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder, run

GPT2_SMALL = ModelConfig(12, 12, 768, 64, 3072, 50257, 1024)


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--model", help="as load_model takes it")
  parser.add_argument("--task", help="as load_task takes it")
  parser.add_argument("--examples", type=int, default=240)
  parser.add_argument("--chunk", type=int, default=64, help="examples at once")
  parser.add_argument("--repeats", type=int, default=5)
  return parser.parse_args(argv)


def main(argv):
  """Prints one JSON line."""
  args = parse(argv)
  check(
    (args.model is None) == (args.task is None),
    "--model",
    "one of --model and --task",
    "both or neither",
    "name the model and the task",
  )
  model, pairs = given(args) if args.model else made(args.examples)
  print(json.dumps(measure(model, pairs, args)), flush=True)


def given(args) -> tuple[LoadedModel, PromptPairs]:
  """A model and a task of the user's."""
  model = load_model(args.model)
  return model, load_task(args.task, model.tokenizer, examples=args.examples)


def made(examples: int) -> tuple[LoadedModel, PromptPairs]:
  """The random model and prompts."""
  config, rng = GPT2_SMALL, np.random.default_rng(0)
  clean = rng.integers(0, config.d_vocab, (examples, 6))
  reference = clean.copy()
  reference[:, 1], answer, foil = rng.integers(0, config.d_vocab, (3, examples))
  tokens = jnp.zeros((1, 1), jnp.int32)
  params = jax.jit(Decoder(config).init)(jax.random.key(0), tokens)["params"]
  model = LoadedModel(config, params, None, "random GPT-2 small", "0" * 64)
  return model, PromptPairs(clean, reference, answer, foil, name="random")


@functools.partial(fast_jit, static_argnames=("model",))
def two_forwards(model, params, batch):
  """Both runs, and nothing of them kept but a number."""
  total = 0
  for tokens in (batch.clean, batch.reference):
    resid, _ = run(model, params, tokens, key_valid=batch.key_valid)
    total += at_answer(resid, batch.answer_pos).sum()
  return total


def measure(model, pairs, args) -> dict:
  """Medians over warm passes in turn."""
  passes = {
    "forwards_s": functools.partial(
      pooled, two_forwards, model, pairs, examples=args.chunk
    ),
    "sums_s": functools.partial(
      change_covariance, model, pairs, examples=args.chunk
    ),
  }
  for one in passes.values():
    one()
  covariance = change_covariance(model, pairs, examples=args.chunk)
  leakage(model, covariance)
  passes["weights_s"] = functools.partial(leakage, model, covariance)
  seconds = {name: [] for name in passes}
  with PeakMemory() as memory:
    for _ in range(args.repeats):
      for name, one in passes.items():
        start = time.perf_counter()
        one()
        seconds[name].append(time.perf_counter() - start)
  middle = {name: statistics.median(values) for name, values in seconds.items()}
  forwards, sums, weights = middle.values()
  return {
    "model": model.name,
    "examples": len(pairs),
    "tokens": f"{pairs.lengths.min()} to {pairs.lengths.max()}",
    **{name: round(value, 2) for name, value in middle.items()},
    "times_its_forwards": round(sums / forwards, 3),
    "whole_times": round((sums + weights) / forwards, 3),
    "peak_gib_over_parameters": round(memory.n_bytes / GIB, 2),
  }


if __name__ == "__main__":
  command_line.run(main)
