r"""What do S models in one program cost? Seconds a step, by way and by S.

One seed alone already fills the cores with the larger model, so S seeds should
cost S times one; small models and accelerators gain more.

  python experiments/benchmarks/ensembles.py --config modular --seeds 1 2 4
"""

import time

import numpy as np

from configs.cores import get_config
from experiments.benchmarks.measure import Compilations, MatrixRate
from headjax import command_line
from headjax.checks import check
from headjax.reports.rows import text_table
from headjax.studies.cores.members import setup
from headjax.training.ensembles import WAYS, Ensemble
from headjax.training.utilisation import step_madds


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
  first = 1 if own else 0  # sums are asked at their last position alone
  cases = [Case(found, n, way, first, data, rows)
           for n in args.seeds for way in WAYS]  # fmt: skip
  rate, rates = MatrixRate(), []
  for _ in range(args.repeats):  # in turns, since other work comes and goes
    rates.append(rate.measure(0.3))
    for case in cases:
      case.measure()
  table = table_rows(cases, float(np.median(rates)), args.steps, found)
  print(f"median of {args.repeats}, in turns; matrices at "
        f"{np.median(rates) / 1e9:.1f} G multiply-adds a second")  # fmt: skip
  print(text_table(table, table[0]))


class Case:
  """So many seeds, in one of the ways."""

  def __init__(self, found, n, way, first, data, rows):
    """Compiles, in the first call."""
    self.n, self.way, self.data, self.rows = n, way, data, rows
    self.ensemble = Ensemble(
      found.model, found.optimizer, np.arange(n), way=way, first=first,
      decaying=found.decaying, dropout_rate=found.dropout,
    )  # fmt: skip
    self.state, self.times = self.ensemble.init(), []
    with Compilations() as compiled:
      self.first_s = self._call()
    self.programs = compiled.count("local")

  def measure(self):
    """One more call."""
    self.times.append(self._call())

  def _call(self):
    start = time.perf_counter()
    self.state, _ = self.ensemble.advance(self.state, self.data, self.rows)
    return time.perf_counter() - start


def table_rows(cases, rate, steps, found):
  """One row a case; one seed in the same way is the measure of the others."""
  step_s = {(c.way, c.n): float(np.median(c.times)) / steps for c in cases}
  least = min(case.n for case in cases)
  madds = step_madds(found.model, found.batch_size)
  return [
    {
      "way": case.way,
      "seeds": case.n,
      "programs": case.programs,
      "first call, s": case.first_s,
      "step, ms": 1e3 * step_s[case.way, case.n],
      "over S x one": step_s[case.way, case.n]
      / (case.n / least * step_s[case.way, least]),
      "share of the matrix rate": case.n
      * madds / step_s[case.way, case.n] / rate,
    }
    for case in cases
  ]  # fmt: skip


if __name__ == "__main__":
  command_line.run(main)
