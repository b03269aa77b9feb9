r"""Does one direction of a pretrained model choose the verb's number?

For every layer of each model the core of the margin between plural and singular
verbs is found on half of the prompts; on the others it is kept alone, removed
and flipped. The axis of the layer whose flip reverses most is then turned while
the model writes on. OUT gets what was measured (`layers-*.nc`), tables (CSV)
and a figure a model.

  python experiments/cores_agreement.py --models smollm2-135m \
    --examples 48 --out results/agreement
"""

import pathlib
import shlex

import numpy as np

from headjax import command_line, load_model, load_task, results
from headjax.checks import check
from headjax.reports.core_figures import Panel, line_figure
from headjax.reports.figures import save_figure
from headjax.reports.html import study
from headjax.reports.rows import save_rows, text_table
from headjax.studies.cores import agreement, number_axis
from headjax.studies.cores.continuing import continue_as

PROMPTS = ("The key to the cabinets", "The keys to the cabinet")


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--models", nargs="+", required=True, metavar="MODEL")
  parser.add_argument("--out", required=True, help="folder for the results")
  parser.add_argument(
    "--examples", type=int, default=240, help="of each split (default 240)"
  )
  parser.add_argument(
    "--new", type=int, default=30, help="tokens of a continuation (30)"
  )
  parser.add_argument("--seed", type=int, default=0, help="of all draws (0)")
  study.add_option(parser)
  args = parser.parse_args(argv)
  check(
    args.examples >= 8, "--examples", args.examples, "at least 8",
    "ask for more",
  )  # fmt: skip
  check(args.new >= 1, "--new", args.new, "at least 1", "ask for more")
  names = [pathlib.Path(spec).name for spec in args.models]
  check(
    len(set(names)) == len(names), "--models", " ".join(args.models),
    "models whose last names differ", "rename a folder",
  )  # fmt: skip
  return args


def main(argv):
  """Measures every model and compares them."""
  args = parse(argv)
  out = command_line.writable_folder(args.out)
  coordinates, prompts, texts, summary = {}, {}, [], []
  for spec in args.models:
    model = load_model(spec)
    name = pathlib.Path(spec).name
    train, test = (
      number_axis.with_attractor(
        load_task("sva", model.tokenizer, split=split, examples=args.examples)
      )
      for split in ("discovery", "evaluation")
    )
    found = number_axis.axes(model, train)
    measured = agreement.measure(model, found, test, seed=args.seed)
    results.save(measured, out / f"layers-{name}.nc")
    rows = agreement.layer_rows(measured)
    save_rows(rows, out / f"layers-{name}.csv")
    print(f"\n{name}, {len(test)} prompts\n{text_table(rows, rows[0])}")
    draw(rows, name, out)
    axis = found[agreement.best_layer(rows)]
    at = measured["coordinate"].sel(layer=axis.layer).values
    coordinates[name] = at
    prompts[name] = [model.tokenizer.decode(row.tolist()) for row in test.clean]
    fit = agreement.knob_fit(at, measured["base"].values)
    summary.append({"model": name, "layer": axis.layer} | fit)
    texts += write(model, axis, args)
  save_rows(summary, out / "knob.csv")
  print(f"\nmargin = slope z + offset\n{text_table(summary, summary[0])}")
  pairs = agreement.agreement_of_models(coordinates, prompts)
  if pairs:
    save_rows(pairs, out / "models.csv")
    print(f"\n{text_table(pairs, pairs[0])}")
  save_rows(texts, out / "texts.csv")
  for row in texts:
    print(f"\n{row['prompt']} | {row['axis']}, {row['number']}: {row['text']}")
  again = f"python experiments/cores_agreement.py {shlex.join(argv)}"
  study.finish(out, "experiments/cores_agreement.py", argv, tables=again)
  print(f"\nwritten to {out}")


def draw(rows, name, out):
  """The AUC by layer."""
  own = {"base": "unedited"} | {kind: kind for kind in agreement.KINDS}
  other = {"base": "unedited"} | {
    f"random {kind}": kind for kind in agreement.KINDS
  }
  marks, limits = {"chance": 0.5}, (0, 1.05)
  panels = [
    Panel(title, "layer", lines, "layer", "AUC", marks, limits=limits)
    for title, lines in (("core", own), ("random direction", other))
  ]
  title = f"{name}: one direction and the number of the verb"
  save_figure(line_figure(rows, panels, title=title), out / f"layers-{name}")


def write(model, axis, args):
  """Continuations of two prompts: as they are, flipped, and the control."""
  rows = []
  other = number_axis.random_axis(axis, args.seed)
  for prompt, wrong in zip(PROMPTS, ("plural", "singular"), strict=True):
    for name, one in (("none", None), ("core", axis), ("random", other)):
      text, strengths = continue_as(
        model, one, prompt, wrong, max_new=args.new, seed=args.seed
      )
      rows.append(
        {
          "model": model.name,
          "prompt": prompt,
          "axis": name,
          "number": "as it is" if one is None else wrong,
          "mean strength": float(np.abs(strengths).mean()),
          "text": " ".join(text.split()),
        }
      )
  return rows


if __name__ == "__main__":
  command_line.run(main)
