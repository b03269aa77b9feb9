r"""How many edges does ACDC decide on a second, one by one and by speculation?

The circuit is the same; the number of batches is not. Speculation pays where a
single graph leaves the device idle: on accelerators, and for small models.

  python experiments/benchmarks/acdc.py [--model FOLDER] [--threshold 0.001]

The default is a random model of 4 layers of 4 heads on 16 prompts of 5 tokens.
"""

import json
import time

from experiments.benchmarks.edges import random_model
from experiments.benchmarks.head_patching import random_prompts
from headjax import command_line, load_model
from headjax.interventions.chunks import GIB
from headjax.interventions.circuits import find_circuit
from headjax.models.config import ModelConfig

SMALL = ModelConfig(4, 4, 128, 32, 512, 1024, 64)


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--model", help="name, folder or file")
  parser.add_argument("--threshold", type=float, default=0.001)
  parser.add_argument("--examples", type=int, default=16)
  parser.add_argument("--tokens", type=int, default=5, help="of a prompt (5)")
  parser.add_argument(
    "--speculate", type=int, nargs="+", default=[1, 4, 16, 64]
  )
  parser.add_argument("--budget-gib", type=float, default=2.0)
  return parser.parse_args(argv)


def main(argv):
  """Prints one JSON line for each number of decisions at once."""
  args = parse(argv)
  model = load_model(args.model) if args.model else random_model(SMALL, scale=4)
  pairs = random_prompts(model, args.examples, args.tokens, first=1)
  first = None
  for speculate in args.speculate:
    found, seconds = search(model, pairs, speculate, args)
    first = found if first is None else first
    row = {
      "speculate": speculate,
      "edges_in_graph": int(found.possible.sum()),
      "edges_in_circuit": int(found.present.sum()),
      "decisions": found.attrs["decisions"],
      "batches": found.attrs["batches"],
      "seconds": round(seconds, 2),
      "decisions_per_second": round(found.attrs["decisions"] / seconds, 1),
      "same_circuit": bool((found.present == first.present).all()),
    }
    print(json.dumps(row), flush=True)


def search(model, pairs, speculate, args):
  """A search that has been compiled before, and its seconds."""

  def once(threshold):
    start = time.perf_counter()
    found = find_circuit(
        model, pairs, threshold,
        speculate=speculate, budget_bytes=int(args.budget_gib * GIB),
    )  # fmt: skip
    return found, time.perf_counter() - start

  once(1e9)  # one decision after the other removes its edge
  return once(args.threshold)


if __name__ == "__main__":
  command_line.run(main)
