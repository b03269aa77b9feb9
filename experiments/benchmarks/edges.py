r"""How fast are edges patched, and how far from their floor?

The floor is the multiply-adds that a sweep over edges cannot avoid, at the rate
of a large matrix product measured before and after. The general form, one whole
forward an edge, patches some of the same edges in the same run. By default the
model has GPT-2's shape and random weights, the prompts five random tokens of
which the second differs, and 5% of its 28,512 edges are drawn; from these
follows the time for all of them.

  python experiments/benchmarks/edges.py [--model FOLDER] [--share 0.05]

On two CPU cores it takes about ten minutes.
"""

import json
import time

import jax
import jax.numpy as jnp
import numpy as np

from experiments.benchmarks.head_patching import random_prompts
from experiments.benchmarks.measure import Compilations, MatrixRate
from headjax import Edit, Edits, LoadedModel, command_line, load_model, run
from headjax.interventions import cost
from headjax.interventions.chunks import GIB
from headjax.interventions.divergence import NegativeKL
from headjax.interventions.edge_lists import all_edges, sample_edges
from headjax.interventions.edges import patch_edges
from headjax.interventions.sweep import at_answer, general_sweep
from headjax.models import cost as model_cost
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder

GPT2 = ModelConfig(12, 12, 768, 64, 3072, 50257, 1024)


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--model", help="name, folder or file")
  parser.add_argument("--share", type=float, default=0.05, help="of the edges")
  parser.add_argument("--seed", type=int, default=0, help="of the draw (0)")
  parser.add_argument("--examples", type=int, default=16)
  parser.add_argument("--tokens", type=int, default=5, help="of a prompt (5)")
  parser.add_argument(
    "--general", type=int, default=16, help="edges by whole forwards (16)"
  )
  parser.add_argument("--budget-gib", type=float, default=2.0)
  return parser.parse_args(argv)


def main(argv):
  """Prints one JSON line."""
  args = parse(argv)
  # What compiling costs is taken off as it is measured.
  jax.config.update("jax_enable_compilation_cache", False)
  model = load_model(args.model) if args.model else random_model(GPT2)
  pairs = random_prompts(model, args.examples, args.tokens, first=1)
  everything = all_edges(model.config)
  chosen = sample_edges(everything, args.share, args.seed)
  row = measure(model, pairs, chosen, args, MatrixRate())
  whole = len(everything) / len(chosen)
  naive = len(everything) * whole_forward(model.config, pairs)
  floor = count(model.config, pairs, everything)
  row |= {
    "all_edges": len(everything),
    "all_edges_hours": round(row["seconds"] * whole / 3600, 3),
    "all_edges_multiply_adds": float(f"{floor:.4g}"),
    "naive_multiply_adds": float(f"{naive:.4g}"),
    "naive_over_floor": round(naive / floor, 2),
  }
  print(json.dumps(row), flush=True)


def random_model(config: ModelConfig, scale: float = 1.0) -> LoadedModel:
  """A model of that shape before any training, its weights so much larger."""
  ids = jnp.zeros((1, 1), jnp.int32)
  params = jax.jit(Decoder(config).init)(jax.random.key(0), ids)["params"]
  params = jax.tree.map(lambda x: scale * x, params)
  return LoadedModel(config, params, None, "random", "0" * 64)


def count(config, pairs, edges) -> int:
  """The multiply-adds that these edges cannot do without."""
  return cost.edge_sweep(
    config, pairs.first_difference, pairs.answer_pos, edges[:, 2]
  )


def whole_forward(config, pairs) -> int:
  """The multiply-adds of one forward of all prompts, and their predictions."""
  unembedding = len(pairs) * config.d_model * config.d_vocab
  return model_cost.forward(config, pairs.lengths) + unembedding


def measure(model, pairs, edges, args, rate) -> dict:
  """Both forms, each between two measurements of the rate.

  Compiling is not counted.
  """
  budget = int(args.budget_gib * GIB)

  def patch(edges):
    start = time.perf_counter()
    with Compilations() as compilations:
      found = patch_edges(model, pairs, edges=edges, budget_bytes=budget)
    compiling = compilations.seconds()
    return found.kl.values, time.perf_counter() - start - compiling, compiling

  general = General(model, pairs, args.general)
  # The general form on both sides, so that a drift of the machine shows.
  _, first_seconds = general.measure()
  before = rate.measure()
  found, seconds, compiling = patch(edges)
  after = rate.measure()
  slow, last_seconds = general.measure()
  slow_seconds = (first_seconds + last_seconds) / 2
  fast, *_ = patch(general.edges)
  madds = count(model.config, pairs, edges)
  matrix = (before + after) / 2
  share = madds / seconds / matrix
  general_madds = len(general.edges) * whole_forward(model.config, pairs)
  general_share = general_madds / slow_seconds / matrix
  times = (len(edges) / seconds) / (len(general.edges) / slow_seconds)
  return {
    "examples": len(pairs),
    "edges": len(edges),
    "seconds": round(seconds, 2),
    "edges_per_second": round(len(edges) / seconds, 2),
    "multiply_adds": float(f"{madds:.4g}"),
    "matrix_rate_gmac": [round(x / 1e9, 1) for x in (before, after)],
    "share_of_floor": round(share, 3),
    "general_edges_per_second": round(len(general.edges) / slow_seconds, 2),
    "general_seconds": [round(x, 2) for x in (first_seconds, last_seconds)],
    "general_share_of_matrix_rate": round(general_share, 3),
    "times_the_general_form": round(times, 2),
    "largest_kl": float(f"{found.max():.3g}"),
    "largest_difference_of_forms": float(f"{np.abs(fast - slow).max():.2g}"),
    "compile_s": round(compiling, 1),
  }


class General:
  """Edges out of one head into the queries of later ones, by whole forwards."""

  def __init__(self, model, pairs, n_edges):
    """What an edge's reader asks with: all at once, from one run."""
    self.model, self.pairs = model, pairs
    into = all_edges(model.config)
    into = into[(into[:, 0] == 0) & (into[:, 1] == 0) & (into[:, 4] == 0)]
    spread = np.linspace(0, len(into) - 1, n_edges).round().astype(int)
    self.edges = into[np.unique(spread)]
    given = (model.model, model.params, pairs.clean)
    with jax.default_matmul_precision("highest"):
      resid, clean = run(*given)
      _, reference = run(model.model, model.params, pairs.reference)
      z = clean.z.at[0, :, :, 0].set(reference.z[0, :, :, 0])
      _, source = run(*given, Edits(z=(Edit(self.gates(1), z),)))
      gain = (source.attn_out - clean.attn_out)[:1]
      everywhere = self.gates(model.config.n_layers)[..., 0]
      streams = Edit(everywhere, clean.resid_pre + gain)
      _, readers = run(*given, Edits(resid_pre=(streams,)))
    self.value = readers.q
    answer = jnp.asarray(pairs.answer_pos)
    self.metric = NegativeKL(at_answer(resid, answer))
    self.answer = answer

  def gates(self, first):
    """`[layer, 1, 1, 1, 1]`: open in the first layers."""
    layers = np.arange(self.model.config.n_layers)
    return jnp.asarray((layers < first) * 1.0).reshape(-1, 1, 1, 1, 1)

  def measure(self):
    """`[example, edge]` divergences and the seconds, once compiled."""
    config = self.model.config
    gates = np.zeros(
      (len(self.edges), config.n_layers, 1, 1, config.n_heads, 1)
    )
    for i, edge in enumerate(self.edges):
      gates[i, edge[2], :, :, edge[3]] = 1
    edits = Edits(q=(Edit(jnp.asarray(gates, jnp.float32), self.value),))

    def sweep():
      return general_sweep(
          self.model.model, self.model.params, jnp.asarray(self.pairs.clean),
          edits, self.metric, answer=self.answer,
      )  # fmt: skip

    sweep()
    start = time.perf_counter()
    found = sweep().effect
    return found.T, time.perf_counter() - start


if __name__ == "__main__":
  command_line.run(main)
