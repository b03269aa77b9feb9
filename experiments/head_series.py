r"""When in training does each head come to matter? All heads, every checkpoint.

SERIES is the folder of a training run, or one that holds a Hugging Face folder
a step (`step1000`, `step2000`, ..., as Pythia's revisions). OUT gets
`effects.nc`, with a `step` dimension, and `summary.csv`, a row a step.

  python experiments/head_series.py --series runs/learned --task sva \
    --split evaluation --examples 32 --out results/learned-sva
"""

from headjax import command_line, load_task, results
from headjax.data import SPLITS
from headjax.interventions.chunks import GIB
from headjax.interventions.heads import ABLATIONS, METHODS
from headjax.interventions.questions import POSITIONS, check_pairs
from headjax.interventions.record import HEAD_SITES
from headjax.interventions.series import at_step, patch_series
from headjax.models.series import find_series, load_series
from headjax.reports.summary import save_table, summarise, table


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--series", required=True, help="folder of checkpoints")
  parser.add_argument("--task", required=True, help="name or .jsonl file")
  parser.add_argument("--split", default="evaluation", choices=tuple(SPLITS))
  parser.add_argument("--examples", type=int, help="prompt pairs")
  parser.add_argument("--out", required=True, help="folder for the results")
  parser.add_argument("--method", default="suffix", choices=METHODS)
  parser.add_argument("--site", default="z", choices=HEAD_SITES)
  parser.add_argument("--position", default="all", choices=POSITIONS)
  parser.add_argument("--ablation", default="reference", choices=ABLATIONS)
  parser.add_argument("--budget-gib", type=float, default=2.0)
  return parser.parse_args(argv)


def main(argv):
  """Measures every checkpoint and writes what was found."""
  args = parse(argv)
  out = command_line.writable_folder(args.out)
  # Whether the checkpoints are one series is known before the first sweep.
  series = find_series(args.series)
  print(
    f"{len(series)} checkpoints, steps {series[0].step} to {series[-1].step}"
  )
  _, first = next(load_series(series[:1]))
  pairs = load_task(
    args.task, first.tokenizer, split=args.split, examples=args.examples
  )
  check_pairs(first.config, pairs)
  del first
  result = patch_series(
    load_series(series),
    pairs,
    method=args.method,
    site=args.site,
    position=args.position,
    ablation=args.ablation,
    budget_bytes=int(args.budget_gib * GIB),
    progress=True,
  )
  results.save(result, out / "effects.nc")
  steps = result.step.values.tolist()
  rows = [summarise(at_step(result, step)).row for step in steps]
  print("\n" + table(rows))
  labelled = zip(steps, rows, strict=True)
  save_table(
    [{"step": step} | row for step, row in labelled], out / "summary.csv"
  )
  print(f"\nwritten to {out}")


if __name__ == "__main__":
  command_line.run(main)
