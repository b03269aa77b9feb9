r"""How did the loss fall? Draws the loss curves of some runs.

  python experiments/loss_curves.py runs/learned runs/write-common-axis \
    --title "small models on the packaged corpus" --out results/loss

writes loss.png and loss.pdf, and prints the last losses.
"""

import pathlib

import numpy as np

from headjax import command_line
from headjax.checks import check
from headjax.reports.figures import save_figure
from headjax.reports.loss_curves import Curve, loss_figure
from headjax.training.recorder import METRICS, read_metrics


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders")
  parser.add_argument("--title", default="Loss curves")
  parser.add_argument("--out", required=True, help="folder of the figure")
  return parser.parse_args(argv)


def main(argv):
  """Draws and prints."""
  args = parse(argv)
  out = command_line.writable_folder(args.out)
  curves = [read_curve(pathlib.Path(run)) for run in args.runs]
  save_figure(loss_figure(curves, args.title), out / "loss")
  for curve in curves:
    print(
      f"{curve.name}: {curve.tokens[-1]:,} tokens, loss {curve.loss[-1]:.4f},"
      f" validation loss {curve.validation_loss[-1]:.4f}"
    )
  print(f"written to {out}")


def read_curve(folder: pathlib.Path) -> Curve:
  """The losses of a run folder."""
  file = folder / METRICS
  check(
    file.is_file(),
    "run",
    f"no file {file}",
    "the folder of a run",
    "check the path",
  )
  lines = read_metrics(folder)
  steps = {line["step"]: line["tokens"] for line in lines if "tokens" in line}
  rate = max(steps.values()) / max(steps) if steps else 0
  trained = [line for line in lines if "loss" in line]
  checked = [line for line in lines if "validation_loss" in line]
  return Curve(
    folder.resolve().name,
    np.array([line["tokens"] for line in trained]),
    np.array([line["loss"] for line in trained]),
    np.array([line["step"] * rate for line in checked]),
    np.array([line["validation_loss"] for line in checked]),
  )


if __name__ == "__main__":
  command_line.run(main)
