r"""Which models of a study are trained already? Trains the others, one by one.

Every variant is trained with every seed, each in a process and a folder of its
own, so that one that fails does not lose the others. The same command goes on
where it was stopped: what is complete is skipped, what is not is resumed. What
follows `--` is passed to every training.

  python experiments/train_all.py --config configs/geometry.py \
    --variants learned,write-common-axis --seeds 0,1,2 --out runs \
    [-- --config.train.dtype=bfloat16]

SIGTERM and Ctrl-C are passed on to the training that runs, which saves. The
status is 1 if a training failed, and 143 or 130 after a signal.
"""

import dataclasses
import itertools
import signal
import subprocess
import sys

from etils import epath

from headjax import command_line, train
from headjax.checks import check
from headjax.models import checkpoints, runs
from headjax.training import from_config, workdir
from headjax.training.from_config import Settings
from headjax.training.recorder import read_metrics

TRAIN = (sys.executable, "-m", "headjax.train")


@dataclasses.dataclass(frozen=True)
class Run:
  """One training.

  Attributes:
    name: variant and seed.
    folder: of the run.
    flags: for `headjax.train`.
    settings: what they say.
  """

  name: str
  folder: epath.Path
  flags: tuple[str, ...]
  settings: Settings

  @property
  def step(self) -> int:
    """Steps that are done and saved."""
    found = checkpoints.steps(self.folder / runs.CHECKPOINTS)
    return found[-1] if found else 0

  @property
  def complete(self) -> bool:
    """Whether nothing is left to do, by the same config."""
    if not runs.is_run(self.folder):
      return False
    saved = self.folder / runs.CONFIG
    same = saved.exists() and not workdir.differences(
      runs.read_json(saved), self.settings.record
    )
    return same and self.step == self.settings.schedule.steps


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--config", required=True, help="configs/STUDY.py")
  parser.add_argument("--variants", required=True, help="with commas between")
  parser.add_argument("--seeds", required=True, help="integers, likewise")
  parser.add_argument("--out", required=True, help="folder of all the runs")
  own, others = list(argv), []
  if "--" in own:
    cut = own.index("--")
    own, others = own[:cut], own[cut + 1 :]
  return parser.parse_args(own), others


def main(argv):
  """Trains what is left, and prints what there is."""
  args, others = parse(argv)
  found = planned(args, others)
  with Passing() as passing:
    status = {run.name: passing.train(run) for run in found}
  print_table(found, status)
  if passing.received:
    sys.exit(128 + passing.received)
  if any(text.startswith("failed") for text in status.values()):
    sys.exit(1)


def planned(args, others: list[str]) -> list[Run]:
  """All runs, each of them with a config that is sound.

  Raises:
    ValueError: a variant, a seed, a field or a value is wrong.
  """
  own = ("--config", "--workdir", "--config.seed")
  twice = [text for text in others if text.partition("=")[0] in own]
  check(
    not twice,
    "after --",
    " ".join(twice),
    "no " + ", ".join(own),
    "use --config, --out and --seeds",
  )
  variants, seeds = args.variants.split(","), args.seeds.split(",")
  for field, given in (("--variants", variants), ("--seeds", seeds)):
    twice = len(set(given)) < len(given)
    check(
      all(given) and not twice,
      field,
      ",".join(given),
      "different ones with single commas between",
      "correct the list",
    )
  found = []
  for variant, seed in itertools.product(variants, seeds):
    name = f"{variant.replace('@', '-')}-seed{seed}"
    folder = epath.Path(args.out) / name
    flags = (
      f"--config={args.config}:{variant}", f"--workdir={folder}", *others,
      f"--config.seed={seed}",
    )  # fmt: skip
    settings = from_config.settings(train.parse(flags).config)
    found.append(Run(name, folder, flags, settings))
  return found


class Passing:
  """Trains, and passes signals on while the `with` block runs.

  Attributes:
    received: the first signal, or 0; after it nothing is begun.
  """

  def __init__(self):
    self.received, self._process = 0, None

  def __enter__(self):
    """Takes over both signals."""
    self._before = {
      number: signal.signal(number, self._pass)
      for number in (signal.SIGTERM, signal.SIGINT)
    }
    return self

  def __exit__(self, *exc):
    """Gives them back."""
    for number, handler in self._before.items():
      signal.signal(number, handler)

  def train(self, run: Run) -> str:
    """Trains what is left of a run; how that ended."""
    if run.complete:
      return "was complete"
    if self.received:
      return "not begun"
    print(f"{run.name}: {run.folder}", flush=True)
    # In a session of its own, the process gets a Ctrl-C once: from here.
    self._process = subprocess.Popen(
      [*TRAIN, *run.flags], start_new_session=True
    )
    if self.received:  # meanwhile
      self._process.send_signal(self.received)
    status = self._process.wait()
    self._process = None
    if status == 0:
      return "complete"
    return "stopped" if self.received else f"failed with status {status}"

  def _pass(self, number, frame):
    self.received = self.received or number
    if self._process is not None:
      self._process.send_signal(number)


def print_table(found: list[Run], status: dict[str, str]) -> None:
  """Prints a line for every run."""
  rows = [("run", "steps", "validation_loss", "tokens_per_s", "status")]
  for run in found:
    steps = f"{run.step}/{run.settings.schedule.steps}"
    rows.append((run.name, steps, *metrics(run.folder), status[run.name]))
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  for row in rows:
    print("  ".join(map(str.ljust, row, widths)).rstrip())


def metrics(folder: epath.Path) -> tuple[str, str]:
  """The last validation loss and the last speed of a run, where there are."""
  last = {}
  for line in read_metrics(folder):
    last |= {key: value for key, value in line.items() if value is not None}
  loss, speed = (last.get(k) for k in ("validation_loss", "tokens_per_s"))
  return (
    "-" if loss is None else f"{loss:.4f}",
    "-" if speed is None else f"{speed:.0f}",
  )


if __name__ == "__main__":
  command_line.run(main)
