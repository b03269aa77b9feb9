r"""Do heads behind in-context rules write the answer, or cancel it?

A cell is a model and a task. Attributions of all heads choose candidates, path
patching tells writers from cancellers, and lesions of both groups say whether
they oppose each other. Measurements go to OUT, with a table of the candidates.

  python experiments/writers_cancellers.py --model smollm2-135m \
    --task hierarchical --out results/smollm2-hierarchical

With --check nothing is measured. RELEASED.json is a cell of the paper's
released results: attributions, effects of the candidates on every pair, and
all that follows from them, which is computed again. The largest difference of
every statistic is printed, and every label that does not follow; status 1 says
that there was any of either.

  python experiments/writers_cancellers.py --check RELEASED.json
"""

import sys

from headjax import command_line, load_model, results
from headjax.checks import check
from headjax.reports.exclusivity_tables import save_rows, text_table
from headjax.studies.writers.cell import judge, measure_cell, shuffle_roles
from headjax.studies.writers.discovery import RULES
from headjax.studies.writers.prompts import TASKS, load_cell
from headjax.studies.writers.released_check import check_released
from headjax.studies.writers.released_file import read_released


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--model", help="name, folder, .gguf file, RUN@STEP")
  parser.add_argument("--task", choices=TASKS)
  parser.add_argument("--out", help="folder for the results")
  parser.add_argument(
    "--examples", type=int, help="of each set at most; default the paper's"
  )
  parser.add_argument(
    "--shuffles", type=int, default=20, help="of the labels (default 20)"
  )
  parser.add_argument("--rule", default="z", choices=RULES)
  parser.add_argument(
    "--splits",
    type=int,
    default=0,
    help="other splits of W and C to lesion, for the sign-shuffle null; 0 "
    "leaves it out (the paper: 10000)",
  )
  parser.add_argument("--seed", type=int, default=0, help="of all resamples")
  parser.add_argument(
    "--check", nargs="+", metavar="RELEASED.json", help="released cells"
  )
  args = parser.parse_args(argv)
  given = [x is not None for x in (args.model, args.task, args.out)]
  check(
    all(given) if args.check is None else not any(given),
    "options",
    f"{sum(given)} of --model, --task and --out"
    + " beside --check" * (args.check is not None),
    "all three, or --check alone",
    "see --help",
  )
  return args


def main(argv):
  """Measures a cell, or checks released ones."""
  args = parse(argv)
  if args.check is None:
    measure(args)
  else:
    check_all(args)


def measure(args):
  """Measures a cell and prints what it says."""
  out = command_line.writable_folder(args.out)
  model = load_model(args.model)
  prompts = load_cell(
    args.task,
    model.tokenizer,
    examples=args.examples,
    n_shuffles=args.shuffles,
  )
  settings = {"rule": args.rule, "seed": args.seed}
  data = measure_cell(model, prompts, progress=sys.stderr.isatty(), **settings)
  for name, dataset in data.items():
    results.save(dataset, out / f"{name}.nc")
  found = judge(data, **settings)
  save_rows(found.rows(), out / "candidates.csv")
  print(f"{model.name}, {args.task}\n")
  show_cell(found)
  if args.splits:
    show_shuffle(
      shuffle_roles(model, prompts, found, limit=args.splits, seed=args.seed)
    )
  paths = data["paths"].attrs
  print(
    f"\nforwards of each set: {data['attributions'].attrs['forwards']} for the "
    f"attributions, {paths['forwards']} for the paths, and total effects of "
    f"{paths['swept_heads']} heads by the suffix sweep"
  )
  print(f"\nwritten to {out}")


def show_cell(found):
  """Prints the candidates, the groups and the verdicts."""
  rows = found.rows()
  print(text_table(rows, rows[0]))
  control, own = found.discovery, found.shares
  print(
    f"\n{control.n_significant} of {control.p.size} heads significant "
    f"({control.rule} rule), {control.n_candidates} candidates; "
    f"{own.n_valid} of {own.n_pairs} pairs with a swing, on average "
    f"{own.mean_swing:.3g}; accuracy {found.accuracy:.3f}"
  )
  if own.doubt:
    print(f"no roles: {own.doubt}")
  for role in ("writer", "canceller"):
    heads = ", ".join("L{}.H{}".format(*h) for h in found.of_role(role))
    print(f"{role}s: {heads or 'none'}")
  for ablation, verdict in found.verdicts.items():
    changes = ", ".join(
      f"{group} {x.estimate:+.3f} [{x.low:+.3f}, {x.high:+.3f}]"
      for group, x in found.changes[ablation].items()
    )
    print(f"{ablation} ablation without {changes}")
    print(f"  {verdict.name}, interaction {verdict.interaction:+.3f}")


def show_shuffle(found):
  """Prints the sign-shuffle null."""
  if found is None:
    print("sign-shuffle: a group is empty, there is nothing to exchange")
    return
  kind = "all" if found.exhaustive else "random"
  print(
    f"sign-shuffle: difference {found.difference:+.3f}, p = {found.p:.3g} of "
    f"{kind} {found.splits} splits"
  )


def check_all(args):
  """Checks every file; the first that cannot be read ends it."""
  cells = {path: read_released(path) for path in args.check}
  reports = {
    path: check_released(cell, seed=args.seed) for path, cell in cells.items()
  }
  for path, report in reports.items():
    print(f"{path}\n")
    show_report(report)
  if not all(report.agrees for report in reports.values()):
    sys.exit(1)


def show_report(report):
  """Prints the differences, the mismatches and what was found."""
  rows = [
    {
      "statistic": found.statistic,
      "numbers": found.count,
      "largest": found.largest,
      "allowed": float(found.allowed),
      "unit": found.unit or "-",
      "where": found.where,
      "wrong": found.wrong,
    }
    for found in report.comparisons
  ]
  print(text_table(rows, rows[0]))
  print(f"\n{len(report.mismatches)} labels do not follow from the numbers")
  for line in report.mismatches:
    print(f"  {line}")
  print("\n" + "\n".join(report.notes))
  if report.agrees:
    print(f"\nall {len(rows)} statistics and all labels are reproduced\n")
    return
  wrong = [found.statistic for found in report.comparisons if found.wrong]
  print(
    f"\nNOT reproduced: {', '.join(wrong) or 'no statistic'}; "
    f"{len(report.mismatches)} labels\n"
  )


if __name__ == "__main__":
  command_line.run(main)
