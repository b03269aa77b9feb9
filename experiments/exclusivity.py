r"""Is an intervention on one head exclusive to that head? Many models, at once.

RUNS are folders of training runs, RUN@STEP, names of models, or patterns of
folders in quotes. Every part of the study is measured on each of them and saved
as OUT/RUN/PART-TASK.nc; what is there already, for the same weights and
prompts, is skipped, so the same command goes on where it was stopped. In the
end OUT/tables, OUT/figures and OUT/report.html are made from the saved files
alone.

  python experiments/exclusivity.py --runs 'runs/*' --out results/exclusivity

The first @tiny run of a design takes two to three minutes of one core, most of
them compilation, its other seeds less than one. Every printed number can be
made again, without a model, from what OUT holds:

  python experiments/exclusivity.py --out results/exclusivity --tables
"""

import os

# Many small products in float64: more threads would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import shlex
import sys
import time

import jax

from headjax import command_line
from headjax.checks import check
from headjax.data import TASKS
from headjax.reports import exclusivity_figures as figures
from headjax.reports.figures import save_figure
from headjax.reports.html import study as report
from headjax.reports.rows import save_rows, text_table
from headjax.studies.exclusivity import (
  claims,
  measuring,
  study,
  subjects,
  tables,
)
from headjax.studies.exclusivity.claim_list import CLAIMS
from headjax.studies.exclusivity.store import Store

SCRIPT, DRAWS = "experiments/exclusivity.py", 5000


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--runs", nargs="+", default=[], help="see above")
  parser.add_argument(
    "--tasks", nargs="+", default=["sva", "quote", "plural"], choices=TASKS
  )
  parser.add_argument("--out", required=True, help="folder for the results")
  parser.add_argument("--parts", help="names with commas between; default all")
  parser.add_argument(
    "--examples", type=int, help="of each split, at most; default all"
  )
  parser.add_argument(
    "--layers",
    type=int,
    nargs="+",
    help="that patched edges lie in; default all",
  )
  parser.add_argument(
    "--draws", type=int, default=DRAWS, help="permutations behind each p"
  )
  parser.add_argument(
    "--quick", action="store_true", help="--examples 32 --draws 200"
  )
  parser.add_argument(
    "--tables", action="store_true", help="measure nothing: tables and figures"
  )
  report.add_option(parser)
  args = parser.parse_args(argv)
  if args.quick:
    args.examples, args.draws = 32, 200
  check(
    bool(args.runs) != args.tables,
    "options",
    f"{len(args.runs)} runs{' and --tables' * args.tables}",
    "--runs, or --tables alone",
    "see --help",
  )
  for name in ("examples", "draws"):
    value = getattr(args, name)
    check(
      value is None or value >= 2,
      f"--{name}",
      value,
      "at least 2",
      "ask for more",
    )
  return args


def main(argv):
  """Measures what is missing, then makes tables and figures."""
  args = parse(argv)
  out = command_line.writable_folder(args.out)
  parts = study.choose(args.parts.split(",") if args.parts else None)
  store = Store(out)
  design, refused = None, []
  for subject in subjects.find(args.runs):
    if subject.design != design:
      jax.clear_caches()  # no other design runs the programs of the last one
    design = subject.design
    refused += measure(subject, store, parts, args)
  rows = make_tables(store, args.draws)
  if refused:
    save_rows(refused, store.folder / "tables" / "refusals.csv")
    print(f"\n{len(refused)} results were refused: see tables/refusals.csv")
  draw(store, rows)
  report.finish(out, SCRIPT, argv, tables=again(args), measured=not args.tables)
  print(f"\nwritten to {out}")


def again(args):
  """The call that makes the tables again, without a model."""
  return shlex.join(
    ["python", SCRIPT, "--out", args.out, "--tables"]
    + ["--draws", str(args.draws)] * (args.draws != DRAWS)
  )


def measure(subject, store, parts, args):
  """Measures one model, with a line for every part; returns what it refused."""
  began = time.perf_counter()
  counts, refused = {}, []
  for part, task, how in measuring.measure_all(
    subject, store, parts, args.tasks, examples=args.examples,
    layers=args.layers, progress=sys.stderr.isatty(),
  ):  # fmt: skip
    short, colon, why = how.partition(":")
    if short == "refused":
      refused.append(
        {"run": subject.name, "part": part, "task": task, "why": why.strip()}
      )
    counts[short] = counts.get(short, 0) + 1
    if colon:
      print(f"{subject.name}: {part} {task or ''}: {how}", flush=True)
  done = ", ".join(f"{n} {how}" for how, n in counts.items())
  took = time.perf_counter() - began
  print(f"{subject.name}: {done} ({took:.1f} s)", flush=True)
  return refused


def make_tables(store, draws):
  """Writes every table for which there are results; returns them all."""
  rows = {name: make(store, draws) for name, make in tables.TABLES.items()}
  rows = {name: found for name, found in rows.items() if found}
  check(
    bool(rows),
    "--out",
    f"no results in {store.folder}",
    "the folder of an earlier call",
    "measure some runs: --runs",
  )
  rows["seeds"] = [
    line
    for name, found in rows.items()
    for line in tables.over_seeds(name, found)
  ]
  rows["claims"] = claims.judge(rows, CLAIMS)
  for name, found in rows.items():
    if found:
      save_rows(found, store.folder / "tables" / f"{name}.csv")
  print_claims(rows["claims"])
  return rows


def print_claims(rows):
  """What holds, in a line each."""
  columns = ("claim", "section", "estimate", "low", "high", "n_seeds", "holds")
  print(text_table(rows, columns))


def draw(store, rows):
  """Draws every figure for which there are results."""
  for name, figure in figures.figures(store, rows).items():
    save_figure(figure, store.folder / "figures" / name)


if __name__ == "__main__":
  command_line.run(main)
