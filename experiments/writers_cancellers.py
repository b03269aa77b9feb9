r"""Do heads behind in-context rules write the answer, or cancel it?

A cell is a model and a task. Attributions of all heads choose candidates, path
patching tells writers from cancellers, and lesions of both groups say whether
they oppose each other. Then follows how the groups work: where they look, what
else they could be, and what becomes of the answer if they are taken away,
transplanted or added. Measurements, tables, figures and a page that shows them
(`report.html`) go to OUT.

  python experiments/writers_cancellers.py --model smollm2-135m \
    --task hierarchical --out results/writers/smollm2-hierarchical

With --table nothing is measured: the cells in the folders of FOLDER become
FOLDER/cells.csv, with tests over all of them.

  python experiments/writers_cancellers.py --table results/writers

With --check nothing is measured either. RELEASED.json is a cell of the paper's
released results: attributions, effects of the candidates on every pair, and
all that follows from them, which is computed again. The largest difference of
every statistic is printed, and every label that does not follow; status 1 says
that there was any of either.

  python experiments/writers_cancellers.py --check RELEASED.json
"""

import shlex
import sys

from headjax import command_line, load_model
from headjax.checks import check, check_choice
from headjax.reports import writers_figures as figures
from headjax.reports import writers_text as text
from headjax.reports.figures import save_figure
from headjax.reports.html import study
from headjax.reports.rows import save_rows, text_table
from headjax.studies.writers import summary
from headjax.studies.writers.cell import judge, measure_cell, shuffle_roles
from headjax.studies.writers.cue_prompts import CUE_TASKS, load_cue_cell
from headjax.studies.writers.discovery import RULES
from headjax.studies.writers.explaining import PARTS
from headjax.studies.writers.folder import save_all, study_groups
from headjax.studies.writers.prompts import TASKS, load_cell
from headjax.studies.writers.released_check import check_released
from headjax.studies.writers.released_file import read_released

_SCRIPT = "experiments/writers_cancellers.py"
_COLUMNS = (
  "model", "task", "accuracy", "pairs", "significant", "writers", "cancellers",
  "zero_writers", "zero_cancellers", "zero_both", "zero_verdict",
  "mean_verdict", "shuffle_p", "shuffle_p_holm",
)  # fmt: skip


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--model", help="name, folder, .gguf file, RUN@STEP")
  parser.add_argument("--task", choices=(*TASKS, *CUE_TASKS))
  parser.add_argument("--out", help="folder for the results of this cell")
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
  parser.add_argument(
    "--parts", help=f"names with commas between, or none; of {', '.join(PARTS)}"
  )
  parser.add_argument("--seed", type=int, default=0, help="of all resamples")
  parser.add_argument("--table", metavar="FOLDER", help="that holds cells")
  parser.add_argument(
    "--check", nargs="+", metavar="RELEASED.json", help="released cells"
  )
  study.add_option(parser)
  args = parser.parse_args(argv)
  given = [x is not None for x in (args.model, args.task, args.out)]
  alone = [name for name in ("check", "table") if getattr(args, name)]
  check(
    not any(given) and len(alone) == 1 if alone else all(given),
    "options",
    f"{sum(given)} of --model, --task and --out"
    + "".join(f" beside --{name}" for name in alone),
    "all three, or --check alone, or --table alone",
    "see --help",
  )
  args.parts = _parts(args.parts)
  return args


def _parts(given):
  """Names of parts; None means all."""
  if given is None:
    return None
  names = [] if given == "none" else given.split(",")
  for name in names:
    check_choice("--parts", name, (*PARTS, "none"))
  return names


def main(argv):
  """Measures a cell, makes a table of cells, or checks released ones."""
  args = parse(argv)
  if args.check is not None:
    check_all(args)
  elif args.table is not None:
    tabulate(args.table, argv)
  else:
    measure(args, argv)


def measure(args, argv):
  """Measures a cell and prints what it says."""
  out = command_line.writable_folder(args.out)
  model = load_model(args.model)
  load = load_cue_cell if args.task in CUE_TASKS else load_cell
  prompts = load(
    args.task,
    model.tokenizer,
    examples=args.examples,
    n_shuffles=args.shuffles,
  )
  settings = {"rule": args.rule, "seed": args.seed}
  data = measure_cell(model, prompts, progress=sys.stderr.isatty(), **settings)
  save_all(data, out)
  found = judge(data, **settings)
  print(f"{model.name}, {args.task}\n\n{text.cell_text(found)}")
  shuffle = None
  if args.splits:
    shuffle = shuffle_roles(
      model, prompts, found, limit=args.splits, seed=args.seed
    )
    print(text.shuffle_text(shuffle))
  paths = data["paths"].attrs
  print(
    f"\nforwards of each set: {data['attributions'].attrs['forwards']} for the "
    f"attributions, {paths['forwards']} for the paths, and total effects of "
    f"{paths['swept_heads']} heads by the suffix sweep\n",
    flush=True,
  )
  tables, reasons = {}, {}
  if args.parts != []:
    tables, reasons = study_groups(
      model, prompts, found, out, parts=args.parts, seed=args.seed
    )
    print(text.tables_text(tables, reasons))
  write(out, model.name, args.task, found, tables)
  row = summary.cell_row(
    model.name, args.task, found, shuffle=shuffle, tables=tables
  )
  summary.save_row(row, out)
  study.finish(out, _SCRIPT, argv, tables=again(args, data))
  print(f"\nwritten to {out}")


def again(args, data):
  """The call that judges the cell again, from its files."""
  return (
    "headjax.studies.writers.cell.judge({name: headjax.results.load("
    f'f"{args.out}/{{name}}.nc") for name in {tuple(data)}}}, '
    f"rule={args.rule!r}, seed={args.seed}).rows()"
  )


def write(out, model, task, found, tables):
  """Writes the tables and the figures of a cell."""
  rows = found.rows()
  save_rows(rows, out / "candidates.csv")
  for name, table in tables.items():
    if table:
      save_rows(table, out / "tables" / f"{name}.csv")
  label = f"{model}, {task}"
  mean = found.discovery.control.mean
  drawn = {
    "attribution": figures.attribution_figure(mean, rows, title=label),
    "roles": figures.role_figure(rows, title=label),
    "lesions": figures.lesion_figure(found.changes, title=label),
  }
  if tables.get("attention"):
    drawn["attention"] = figures.attention_figure(
      tables["attention"], title=label
    )
  for name, figure in drawn.items():
    save_figure(figure, out / "figures" / name)


def tabulate(folder, argv):
  """Writes and prints the table of all cells of a folder."""
  command_line.writable_folder(folder)
  rows = summary.over_cells(summary.read_rows(folder))
  save_rows(rows, f"{folder}/cells.csv")
  print(text_table(rows, _COLUMNS) + "\n")
  print("\n".join(summary.told(rows)))
  study.finish(
    folder,
    _SCRIPT,
    argv,
    tables=f"python {_SCRIPT} --table {shlex.quote(str(folder))}",
    measured=False,
  )


def check_all(args):
  """Checks every file; the first that cannot be read ends it."""
  cells = {path: read_released(path) for path in args.check}
  reports = {
    path: check_released(cell, seed=args.seed) for path, cell in cells.items()
  }
  for path, report in reports.items():
    print(f"{path}\n\n{text.check_text(report)}")
  if not all(report.agrees for report in reports.values()):
    sys.exit(1)


if __name__ == "__main__":
  command_line.run(main)
