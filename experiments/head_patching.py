r"""Which heads matter for a task? Patches all of them and shows the answer.

For every model and task, each head's output is replaced by its value on the
reference prompt (or by zero, or its mean), and the drop of the logit
difference is measured per prompt. OUT gets `effects.nc` and a heat map
(`heads.png`, `heads.pdf`), in a folder per model and task when there are
several, and `summary.csv`. `report.html` shows all that, heads to be hovered
and clicked, with their attention on two prompts and their overlaps with later
heads (`details.nc`).

  python experiments/head_patching.py --model smollm2-135m --task sva \
    --split evaluation --examples 32 --out results/smollm2-sva

A task is a name (sva, quote, plural) or a .jsonl file with one object a line:
  {"clean": "The key by the doors", "reference": "The keys by the doors",
   "answer": " is", "foil": " are"}
"""

import pathlib

from headjax import command_line, load_model, load_task, patch_heads, results
from headjax.checks import check
from headjax.data import SPLITS
from headjax.interventions.chunks import GIB
from headjax.interventions.details import head_details
from headjax.interventions.heads import ABLATIONS, METHODS
from headjax.interventions.questions import POSITIONS, check_pairs
from headjax.interventions.record import HEAD_SITES
from headjax.reports.figures import head_heatmap, save_figure
from headjax.reports.html import study
from headjax.reports.summary import Summary, save_table, summarise, table


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument(
    "--model", nargs="+", required=True, help="names, folders, .gguf files"
  )
  parser.add_argument(
    "--task", nargs="+", required=True, help="names or .jsonl files"
  )
  parser.add_argument("--split", default="evaluation", choices=tuple(SPLITS))
  parser.add_argument(
    "--examples", type=int, help="prompt pairs; default the whole split"
  )
  parser.add_argument("--out", required=True, help="folder for the results")
  parser.add_argument("--method", default="suffix", choices=METHODS)
  parser.add_argument("--site", default="z", choices=HEAD_SITES)
  parser.add_argument("--position", default="all", choices=POSITIONS)
  parser.add_argument("--ablation", default="reference", choices=ABLATIONS)
  parser.add_argument(
    "--budget-gib",
    type=float,
    default=2.0,
    help="memory for the sweep beside the parameters (default 2)",
  )
  parser.add_argument(
    "--no-details", action="store_true", help="do not write details.nc"
  )
  study.add_option(parser)
  return parser.parse_args(argv)


def main(argv):
  """Measures every model on every task and writes what was found."""
  args = parse(argv)
  out = command_line.writable_folder(args.out)
  # Everything is loaded and checked before the first sweep begins.
  models = [load_model(spec) for spec in args.model]
  cells = [
    (model, pairs_for(model, task, args))
    for model in models
    for task in args.task
  ]
  summaries = []
  for model, pairs in cells:
    result = patch_heads(
      model,
      pairs,
      args.method,
      site=args.site,
      position=args.position,
      ablation=args.ablation,
      budget_bytes=int(args.budget_gib * GIB),
      progress=True,
    )
    name = f"{model.name}-{pairs.name}"
    folder = out / name if len(cells) > 1 else out
    summaries.append(summarise(result, n_tasks=len(args.task)))
    write(result, summaries[-1], folder)
    if not args.no_details:
      results.save(head_details(model, pairs), folder / "details.nc")
  print_summaries(summaries)
  save_table([summary.row for summary in summaries], out / "summary.csv")
  study.finish(out, "experiments/head_patching.py", argv, tables=again(args))
  print(f"\nwritten to {out}")


def again(args):
  """The call that gives the rows of `summary.csv` again."""
  return (
    f"[headjax.reports.summary.summarise(headjax.results.load(file), n_tasks="
    f"{len(args.task)}).row for file in pathlib.Path({args.out!r})"
    '.rglob("effects.nc")]'
  )


def pairs_for(model, task, args):
  """The prompts of a task, checked against the model."""
  pairs = load_task(
    task, model.tokenizer, split=args.split, examples=args.examples
  )
  check_pairs(model.config, pairs)
  check(
    len(pairs) > 1,
    f"task {pairs.name}",
    "1 pair",
    "2 or more, for intervals",
    "add pairs; patch_heads in Python takes a single one",
  )
  return pairs


def write(result, summary: Summary, folder: pathlib.Path):
  """Writes the effects and their heat map."""
  results.save(result, folder / "effects.nc")
  figure = head_heatmap(
    result.effect.values,
    title=f"{summary.model}, {summary.task}",
    base=result.base.values,
  )
  save_figure(figure, folder / "heads")


def print_summaries(summaries: list[Summary]):
  """Prints the table and the largest heads."""
  print("\n" + table([summary.row for summary in summaries]))
  print(
    "\nEffects are logit differences, clean minus patched: positive heads"
    " help.\nNeff = N_index x N_layer. Lambda is the share of positive"
    " cross-layer effect\nwithin one index; p by shuffling the heads of"
    " each layer."
  )
  for summary in summaries:
    print(
      f"\nlargest heads of {summary.model} on {summary.task}"
      " (mean effect, 95% bootstrap interval)"
    )
    for head in summary.top:
      print(f"  {head}")


if __name__ == "__main__":
  command_line.run(main)
