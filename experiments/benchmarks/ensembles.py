r"""What do S models in one program cost? Seconds a step, by way and by S.

One seed alone already fills the cores with the larger model, so S seeds should
cost S times one; small models and accelerators gain more.

  python experiments/benchmarks/ensembles.py --config modular --seeds 1 2 4
"""

import time

import numpy as np

from configs.cores import get_config
from headjax import command_line
from headjax.checks import check
from headjax.reports.rows import text_table
from headjax.studies.cores.members import setup
from headjax.training.ensembles import WAYS, Ensemble


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--config", default="markov", help="default markov")
  parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 4, 8])
  parser.add_argument("--steps", type=int, default=50, help="a call (50)")
  parser.add_argument("--repeats", type=int, default=3, help="calls (3)")
  args = parser.parse_args(argv)
  for name in ("steps", "repeats"):
    got = getattr(args, name)
    check(got >= 1, f"--{name}", got, "at least 1", "ask for more")
  check(
    min(args.seeds) >= 1, "--seeds", args.seeds, "counts of 1 or more",
    "leave out the others",
  )  # fmt: skip
  return args


def main(argv):
  """Measures and prints."""
  args = parse(argv)
  config = get_config(args.config)
  own = {} if config.model.d_vocab else {"d_vocab": config.p}
  found = setup(config, **own)
  rng = np.random.default_rng(0)
  shape = (4 * found.batch_size, found.model.n_ctx + 1)
  data = rng.integers(0, found.model.d_vocab, shape)
  rows = rng.integers(0, len(data), (args.steps, found.batch_size))
  table, first = [], {}
  for n in args.seeds:
    for way in WAYS:
      compile_s, step_s = measure(found, n, way, data, rows, args.repeats)
      first.setdefault(way, step_s / n)
      table.append(
        {
          "way": way,
          "seeds": n,
          "first call, s": compile_s,
          "step, ms": 1e3 * step_s,
          "over S x one": step_s / (n * first[way]),
          "loss rows a second": n * data.shape[1] * len(rows[0]) / step_s,
        }
      )
  print(text_table(table, table[0]))


def measure(found, n, way, data, rows, repeats):
  """Seconds of the first call, and of a step in the fastest of the others."""
  ensemble = Ensemble(found.model, found.optimizer, np.arange(n), way=way)
  times, state = [], ensemble.init()
  for _ in range(repeats + 1):
    start = time.perf_counter()
    state, _ = ensemble.advance(state, data, rows)
    times.append(time.perf_counter() - start)
  return times[0], min(times[1:]) / len(rows)


if __name__ == "__main__":
  command_line.run(main)
