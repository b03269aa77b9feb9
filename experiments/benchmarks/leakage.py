r"""What does leakage cost beyond its two forwards?

Timed in turn, on the same chunks: the two forwards alone, and the pass that
also sums up every head's changes. `times_its_forwards` is the ratio of their
medians. What then follows from the weights and these sums, the read spaces and
the energy that each head leaves in each of them, does not grow with the
prompts, and hardly with the tasks that are asked for in one call, as the
exclusivity study does: `whole_times` is the cost of a model measured on one
task, and on `--tasks` of them, over that of its forwards. The sums run both
prompts as one batch, which is faster than two forwards; `as_one` is over
forwards that do so too. Rates are in multiply-adds a second, `matrix_rate` that
of one large product.

  python experiments/benchmarks/leakage.py [--model smollm2-135m --task sva]

Without a model, prompts of 6 random tokens that differ in the second are run
through a random model of the shape of GPT-2 small. A run that also measures
the 300 discovery prompts of each task has `--examples 540`.
"""

import functools
import json
import os
import statistics
import time

# Many small products in float64: more threads would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import jax.numpy as jnp
import numpy as np

from experiments.benchmarks.measure import MatrixRate, PeakMemory
from headjax import (
  LoadedModel,
  PromptPairs,
  command_line,
  load_model,
  load_task,
)
from headjax.checks import check
from headjax.interventions.chunks import GIB
from headjax.interventions.leakage import (
  both_prompts,
  change_covariance,
  leakage,
)
from headjax.interventions.pooling import pooled
from headjax.interventions.sweep import at_answer
from headjax.models import cost, spaces
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
  parser.add_argument("--tasks", type=int, default=3, help="in one call")
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
def one_forward(model, params, batch):
  """Both runs as one batch, as the sums make them."""
  tokens, key_valid = both_prompts(batch)
  answer_pos = jnp.repeat(batch.answer_pos, 2, axis=0)
  resid, _ = run(model, params, tokens, key_valid=key_valid)
  return at_answer(resid, answer_pos).sum()


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
  forwards = functools.partial(
    pooled, two_forwards, model, pairs, examples=args.chunk
  )
  sums = functools.partial(change_covariance, model, pairs, examples=args.chunk)
  one = sums()
  several = np.stack([one] * args.tasks)
  rate = MatrixRate()
  passes = {
    "forwards_s": forwards,
    "forwards_as_one_s": functools.partial(
      pooled, one_forward, model, pairs, examples=args.chunk
    ),
    "sums_s": sums,
    "weights_s": functools.partial(leakage, model, one),
    "weights_of_all_s": functools.partial(leakage, model, several),
  }
  for each in passes.values():
    each()
  seconds = {name: [] for name in passes}
  rates = []
  with PeakMemory() as memory:
    for _ in range(args.repeats):
      rates.append(rate.measure(0.5))
      for name, each in passes.items():
        start = time.perf_counter()
        each()
        seconds[name].append(time.perf_counter() - start)
  middle = {name: statistics.median(values) for name, values in seconds.items()}
  return {
    "model": model.name,
    "examples": len(pairs),
    "tokens": f"{pairs.lengths.min()} to {pairs.lengths.max()}",
    **{name: round(value, 2) for name, value in middle.items()},
    **ratios(args.tasks, **middle),
    **rates_reached(model, pairs, middle, statistics.median(rates)),
    "peak_gib_over_parameters": round(memory.n_bytes / GIB, 2),
  }


def ratios(
  tasks: int,
  forwards_s: float,
  forwards_as_one_s: float,
  sums_s: float,
  weights_s: float,
  weights_of_all_s: float,
) -> dict:
  """Costs over those of the forwards, of one task and of several."""
  several = sums_s + weights_of_all_s / tasks
  costs = {
    "times_its_forwards": sums_s,
    "whole_times": sums_s + weights_s,
    f"whole_times_of_{tasks}": several,
  }
  found = {name: round(cost / forwards_s, 3) for name, cost in costs.items()}
  as_one = round(several / forwards_as_one_s, 3)
  return found | {f"whole_times_of_{tasks}_as_one": as_one}


def rates_reached(model, pairs, seconds, matrix: float) -> dict:
  """Multiply-adds of both parts, and how many a second."""
  forwards = 2 * cost.forward(model.config, pairs.lengths)
  weights = pair_products(model.config)
  return {
    "forwards_multiply_adds": float(f"{forwards:.3g}"),
    "weights_multiply_adds": float(f"{weights:.3g}"),
    "matrix_rate": float(f"{matrix:.3g}"),
    "forwards_rate": float(f"{forwards / seconds['forwards_s']:.3g}"),
    "weights_rate": float(f"{weights / seconds['weights_of_all_s']:.3g}"),
  }


def pair_products(config: ModelConfig) -> int:
  """Multiply-adds of every W_O with the read bases of every later layer."""
  readers = {"K": config.n_kv_heads, "V": config.n_kv_heads}
  widths = {"Q": config.d_key, "K": config.d_key}
  columns = sum(
    readers.get(x, config.n_heads) * widths.get(x, config.d_head)
    for x in spaces.inputs(config)
  )
  layers = config.n_layers * (config.n_layers - 1) // 2
  return layers * config.n_heads * config.d_head * config.d_model * columns


if __name__ == "__main__":
  command_line.run(main)
