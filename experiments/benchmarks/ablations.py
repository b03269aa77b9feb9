r"""What does the ablation of circuits cost beyond the layers that it must run?

A group of heads needs the layers from its first one on, and of the last one
what the query asks for; the whole model needs all of them once. Timed in turn,
on the same chunks: a plain forward with the unembedding of the query, and the
sweep over a circuit with all its controls. `needed_forwards` are multiply-adds,
those of a forward being 1, `layer_forwards` the same with last layers as whole
ones. `times_needed` and `times_layers` are the sweep's time over theirs.

  python experiments/benchmarks/ablations.py --examples 64

runs random rows of 256 tokens through a random model of the shape of GPT-2
small, whose circuit has six heads in four layers.
"""

import functools
import json
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

from experiments.benchmarks.leakage import GPT2_SMALL
from headjax import LoadedModel, command_line
from headjax.checks import check
from headjax.data.induction import random_induction
from headjax.interventions import chunks
from headjax.interventions.ablations import ablate_groups, first_layer
from headjax.interventions.sweep import PRECISION, at_answer
from headjax.models.compiling import fast_jit
from headjax.models.cost import block_cost
from headjax.models.decoder import Decoder, run, unembed
from headjax.studies.spectral.controls import controls

CIRCUIT = ((4, 11), (5, 1), (5, 5), (6, 9), (7, 2), (7, 10))


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--examples", type=int, default=64)
  parser.add_argument("--length", type=int, default=256, help="tokens (256)")
  parser.add_argument("--draws", type=int, default=40)
  parser.add_argument("--repeats", type=int, default=3)
  parser.add_argument("--budget-gib", type=float, default=2.0)
  args = parser.parse_args(argv)
  for name in ("examples", "draws", "repeats"):
    value = getattr(args, name)
    check(value >= 1, f"--{name}", value, "at least 1", "ask for some")
  return args


def main(argv):
  """Prints one JSON line."""
  args = parse(argv)
  print(json.dumps(measure(made(), args)), flush=True)


def made() -> LoadedModel:
  """A random model."""
  tokens = jnp.zeros((1, 1), jnp.int32)
  init = jax.jit(Decoder(GPT2_SMALL).init)
  params = init(jax.random.key(0), tokens)["params"]
  return LoadedModel(GPT2_SMALL, params, None, "random model", "0" * 64)


@functools.partial(fast_jit, static_argnames=("model",))
def forward(model, params, tokens, query):
  """A plain forward, and the logits at the query."""
  resid, _ = run(model, params, tokens)
  return unembed(model, params, at_answer(resid, query)).sum()


def measure(model, args) -> dict:
  """Medians over warm passes in turn."""
  config = model.config
  probe = random_induction(
    config.d_vocab, config.n_ctx, args.examples, length=args.length
  )
  shape = config.n_layers, config.n_heads
  heads = [(a % shape[0], b % shape[1]) for a, b in CIRCUIT]
  groups = controls(heads, shape, draws=args.draws).groups
  distinct = np.unique(groups, axis=0)
  layers = sum(config.n_layers - first_layer(group) for group in distinct)
  whole = 1 + layers / config.n_layers
  needed = needed_forwards(config, distinct, args.length)
  budget = int(args.budget_gib * chunks.GIB)
  sweep = functools.partial(
    ablate_groups, model, probe, groups, budget_bytes=budget
  )
  size = sweep().attrs["chunk"]
  plain = functools.partial(forwards, model, probe, size)
  plain()
  seconds = {"forward_s": [], "sweep_s": []}
  for _ in range(args.repeats):
    for name, one in zip(seconds, (plain, sweep), strict=True):
      began = time.perf_counter()
      one()
      seconds[name].append(time.perf_counter() - began)
  found = {name: statistics.median(times) for name, times in seconds.items()}
  return {
    "model": model.name,
    "examples": args.examples,
    "tokens": args.length,
    "chunk": size,
    "groups": len(groups),
    "distinct_groups": len(distinct),
    "needed_forwards": needed,
    "layer_forwards": whole,
    **found,
    "times_layers": found["sweep_s"] / (whole * found["forward_s"]),
    "times_needed": found["sweep_s"] / (needed * found["forward_s"]),
    "device": jax.devices()[0].device_kind,
  }


def needed_forwards(config, groups, n_pos) -> float:
  """The multiply-adds of a base and of the groups, in plain forwards."""
  cost, unembedding = block_cost(config), config.d_model * config.d_vocab
  layer = n_pos * (cost.dense + n_pos * cost.key)
  last = n_pos * cost.kv + cost.q + cost.o + cost.mlp + n_pos * cost.key
  forward = config.n_layers * layer + unembedding
  before = sum(config.n_layers - 1 - first_layer(group) for group in groups)
  return 1 + (before * layer + len(groups) * (last + unembedding)) / forward


def forwards(model, probe, size) -> None:
  """All rows once, in chunks of the sweep's size."""
  with jax.default_matmul_precision(PRECISION):
    for index, _ in chunks.slices(len(probe), size):
      forward(
        model.model, model.params, probe.tokens[index], probe.query[index]
      ).block_until_ready()


if __name__ == "__main__":
  command_line.run(main)
