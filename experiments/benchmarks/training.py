r"""How fast is a training step here, and how far from the machine's rate?

Prints, for models of three sizes and designs, tokens a second, the share of
the measured rate of a large matrix product that the step's multiply-adds
reach, the time to compile, scanned and unrolled, the peak memory, and the time
that the host needs for a batch as a share of a step.

With --peer, the interpreter of an environment with PyTorch, and --peer-script,
a script that prints {"tokens_per_second": ...} for --layers, --heads, --width,
--batch, --context, --vocab and --steps, the peer is timed in turn with each
step and the ratio is printed.

  python experiments/benchmarks/training.py [--only small] [--repeats 3] \
    [--peer PYTHON --peer-script FILE]
"""

import csv
import dataclasses
import json
import statistics
import subprocess
import sys
import time

import jax
import numpy as np

from configs.geometry import get_config
from experiments.benchmarks.measure import MatrixRate, PeakMemory
from headjax import command_line
from headjax.checks import check
from headjax.data.toy import Toy
from headjax.models.config import ModelConfig
from headjax.models.from_config import model_config
from headjax.training.recipe import Arithmetic, Optimizer
from headjax.training.sharding import MeshShape, make_mesh
from headjax.training.step import Trainer
from headjax.training.utilisation import step_madds


@dataclasses.dataclass(frozen=True)
class Case:
  """A model and a batch: `batch` sequences of `config.n_ctx` tokens."""

  config: ModelConfig
  batch: int
  steps: int  # timed in one repeat

  @property
  def tokens(self) -> int:
    """Tokens of a step."""
    return self.batch * self.config.n_ctx


def cases() -> dict[str, Case]:
  """Name -> case."""
  small = ModelConfig(4, 4, 256, 64, 1024, 4096, 256)
  full = {
    row: model_config(get_config(row).model)
    for row in ("learned", "write-common-axis", "all-common-axis")
  }
  return {"small": Case(small, 8, 20)} | {
    row: Case(config, 1, 3) for row, config in full.items()
  }


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  names = list(cases())
  parser.add_argument("--only", nargs="+", choices=names, default=names)
  parser.add_argument("--repeats", type=int, default=3)
  parser.add_argument("--peer", metavar="PYTHON")
  parser.add_argument("--peer-script", metavar="FILE")
  args = parser.parse_args(argv)
  check(
    (args.peer is None) == (args.peer_script is None),
    "--peer",
    args.peer,
    "--peer and --peer-script together",
    "give both or neither",
  )
  return args


def main(argv):
  """Prints one CSV line a case."""
  args = parse(argv)
  writer = csv.DictWriter(
    sys.stdout,
    (
      "case", "parameters", "tokens_per_s", "peer_tokens_per_s", "ratio",
      "share_of_rate", "matrix_gmac_s", "compile_scanned_s",
      "compile_unrolled_s", "peak_gib", "input_share",
    ),
  )  # fmt: skip
  writer.writeheader()
  rate = MatrixRate()
  for name in args.only:
    writer.writerow({"case": name} | measure(cases()[name], args, rate))
    sys.stdout.flush()


def measure(case: Case, args, rate: MatrixRate) -> dict[str, str]:
  """One line: our step and the peer's, in turn."""
  scanned = Step(case, unroll=1)
  with PeakMemory() as memory:
    step = Step(case, unroll=case.config.n_layers)
    step.seconds(1)
  ours, theirs, rates = [], [], []
  for _ in range(args.repeats):
    if args.peer:
      theirs.append(peer(case, args))
    rates.append(rate.measure())
    ours.append(case.tokens / step.seconds(case.steps))
  speed, gmac = statistics.median(ours), statistics.median(rates)
  madds = step_madds(case.config, case.batch)
  ratio = [a / b for a, b in zip(ours, theirs, strict=False)]
  return {
    "parameters": f"{step.n_params:,}",
    "tokens_per_s": f"{speed:.0f}",
    "peer_tokens_per_s": f"{statistics.median(theirs):.0f}" if theirs else "",
    "ratio": f"{statistics.median(ratio):.3f}" if ratio else "",
    "share_of_rate": f"{speed / case.tokens * madds / gmac:.3f}",
    "matrix_gmac_s": f"{gmac / 1e9:.1f}",
    "compile_scanned_s": f"{scanned.compile_s:.1f}",
    "compile_unrolled_s": f"{step.compile_s:.1f}",
    "peak_gib": f"{memory.n_bytes / 2**30:.2f}",
    "input_share": f"{input_seconds(case) * speed / case.tokens:.4f}",
  }


class Step:
  """The compiled step of a case, on batches of random tokens."""

  def __init__(self, case: Case, **arithmetic):
    config = case.config
    arithmetic = Arithmetic(case.batch, **{"loss_rows": 512} | arithmetic)
    recipe = Optimizer(steps=1000, warmup=10)
    self.trainer = Trainer(config, recipe, arithmetic, make_mesh(MeshShape()))
    shape = (case.batch, config.n_ctx + 1)
    tokens = np.random.default_rng(0).integers(0, config.d_vocab, shape)
    self.tokens = self.trainer.place(tokens.astype(np.int32))
    start = time.perf_counter()
    state = self.trainer.abstract_state()
    self.step = self.trainer.step.lower(state, self.tokens).compile()
    self.compile_s = time.perf_counter() - start
    self.case, self.state = case, None

  @property
  def n_params(self) -> int:
    """Parameters of the model."""
    return sum(x.size for x in jax.tree.leaves(self.state.params))

  def seconds(self, steps: int) -> float:
    """Median seconds of a step."""
    if self.state is None:
      self.state = self.trainer.init(0)
    found = []
    for _ in range(steps):
      start = time.perf_counter()
      self.state, self.metrics = self.step(self.state, self.tokens)
      jax.block_until_ready(self.metrics)
      found.append(time.perf_counter() - start)
    return statistics.median(found)


def peer(case: Case, args) -> float:
  """The peer's tokens a second at the same sizes."""
  config = case.config
  options = {
    "layers": config.n_layers, "heads": config.n_heads,
    "width": config.d_model, "batch": case.batch, "context": config.n_ctx,
    "vocab": config.d_vocab, "steps": case.steps,
  }  # fmt: skip
  command = [args.peer, args.peer_script]
  for name, value in options.items():
    command += [f"--{name}", str(value)]
  done = subprocess.run(command, capture_output=True, text=True)
  check(
    done.returncode == 0,
    "--peer-script",
    f"status {done.returncode}: {done.stderr.strip()[-200:]}",
    "a script that ends with status 0",
    "run it by hand",
  )
  return json.loads(done.stdout)["tokens_per_second"]


def input_seconds(case: Case) -> float:
  """What the host needs to make a batch of the generated corpus."""
  toy, found = Toy(), []
  for step in range(5):
    rows = np.arange(case.batch) + step * case.batch
    start = time.perf_counter()
    toy.sequences(0, rows, case.config.n_ctx + 1)
    found.append(time.perf_counter() - start)
  return statistics.median(found)


if __name__ == "__main__":
  command_line.run(main)
