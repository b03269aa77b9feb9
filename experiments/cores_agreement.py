r"""Does one direction of a pretrained model choose the verb's number?

For every layer of each model the core of the margin between plural and singular
verbs is found on discovery prompts, a layer is chosen on validation prompts, by
whose flip reverses most, and all is told on evaluation prompts: its axis kept
alone, removed and flipped in every layer; how far the chosen one must be moved
until the verb turns; what the model writes on while it is; and whether models
order the same prompts alike. OUT gets what was measured (`*.nc`), tables (CSV)
and a figure a model.

  python experiments/cores_agreement.py --models smollm2-135m RUN1 RUN2 \
    --examples 128 --out results/agreement
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
from headjax.studies.cores import agreement, alike, number_axis, turning
from headjax.studies.cores.continuing import continue_as

SPLITS = ("discovery", "validation", "evaluation")
# Continued beside those of the task, by models that have the words.
PROMPTS = {"The key to the cabinets": False, "The keys to the cabinet": True}


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
  parser.add_argument(
    "--texts", type=int, default=3, help="continued, of each number (3)"
  )
  parser.add_argument("--seed", type=int, default=0, help="of all draws (0)")
  study.add_option(parser)
  args = parser.parse_args(argv)
  check(
    args.examples >= 8, "--examples", args.examples, "at least 8",
    "ask for more",
  )  # fmt: skip
  for name in ("new", "texts"):
    got = getattr(args, name)
    check(got >= 1, f"--{name}", got, "at least 1", "ask for more")
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
  measured = [measure(spec, args, out) for spec in args.models]
  for name in ("knob", "turned", "texts"):
    save_rows(
      [row for one in measured for row in one[name]], out / f"{name}.csv"
    )
  compare(measured, args, out)
  again = f"python experiments/cores_agreement.py {shlex.join(argv)}"
  study.finish(out, "experiments/cores_agreement.py", argv, tables=again)
  print(f"\nwritten to {out}")


def measure(spec, args, out):
  """All about one model."""
  model, name = load_model(spec), pathlib.Path(spec).name
  train, choosing, test = (
    number_axis.with_attractor(
      load_task("sva", model.tokenizer, split=split, examples=args.examples)
    )
    for split in SPLITS
  )
  axes = number_axis.axes(model, train)
  flips = agreement.flip_aucs(model, axes, choosing)
  best = int(np.argmin(flips))
  found = agreement.measure(model, axes, test, seed=args.seed)
  results.save(found, out / f"layers-{name}.nc")
  rows = agreement.layer_rows(found)
  rows = [r | {"flip, chosen on": x} for r, x in zip(rows, flips, strict=True)]
  save_rows(rows, out / f"layers-{name}.csv")
  print(f"\n{name}, AUC of {len(test)} prompts\n{text_table(rows, rows[0])}")
  draw(rows, name, out)
  turn = turning.turn(model, axes[best], test, seed=args.seed)
  results.save(turn, out / f"turned-{name}.nc")
  turned = [{"model": name} | row for row in turning.turned_rows(turn)]
  print(f"\nlayer {best} turned\n{text_table(turned, turned[0])}")
  at = found["coordinate"].sel(layer=best).values
  knob = {"model": name, "layer": best, "separation": axes[best].separation}
  knob |= agreement.knob_fit(at, found["base"].values)
  print(f"\nmargin = slope z + offset\n{text_table([knob], knob)}")
  texts = write(model, name, axes[best], test, turn, args)
  return {
    "name": name, "model": model, "axis": axes[best], "test": test,
    "knob": [knob], "turned": turned, "texts": texts,
  }  # fmt: skip


def compare(measured, args, out):
  """Spearman's rho between all models, on the prompts that all can read."""
  if len(measured) < 2:
    return
  tokenizers = [one["model"].tokenizer for one in measured]
  texts = alike.shared_texts(tokenizers, [one["test"] for one in measured])
  if len(texts) < alike.LEAST:
    print(f"\nmodels share {len(texts)} prompts: too few to compare them")
    return
  coordinates = {}
  for one in measured:
    pairs = alike.as_pairs(one["model"].tokenizer, texts)
    streams = number_axis.last_streams(one["model"], pairs)
    coordinates[one["name"]] = one["axis"].coordinates(streams)
  plural = np.array(list(texts.values()))
  rows = alike.pair_rows(coordinates, plural, seed=args.seed)
  save_rows(rows, out / "models.csv")
  print(f"\n{text_table(rows, rows[0])}")
  for field, about in (("spearman", "all"), ("within", "within a number")):
    table = alike.matrix_rows(rows, list(coordinates), field)
    print(f"\nSpearman's rho, {about}\n{text_table(table, table[0])}")


def draw(rows, name, out):
  """The AUC by layer."""
  own = {"base": "unedited"} | {kind: kind for kind in agreement.KINDS}
  other = {"base": "unedited"} | {
    f"random {kind}": kind for kind in agreement.KINDS
  }
  other[agreement.AS_FAR] = "moved as far as the flip"
  marks, limits = {"chance": 0.5}, (0, 1.05)
  panels = [
    Panel(title, "layer", lines, "layer", "AUC", marks, limits=limits)
    for title, lines in (("core", own), ("random direction", other))
  ]
  title = f"{name}: one direction and the number of the verb"
  save_figure(line_figure(rows, panels, title=title), out / f"layers-{name}")


def write(model, name, axis, test, turn, args):
  """Continuations: as they are, turned, and moved as far at random.

  Their first word is a verb, drawn among the four by what the model gives them.
  """
  rows, control = [], number_axis.random_axis(axis, args.seed)
  for prompt, plural in prompts(model, test, turn, args.texts).items():
    wrong = "singular" if plural else "plural"
    print(f"\n{prompt}")
    for label, along in (("none", None), ("core", axis), ("random", control)):
      text, strengths = continue_as(
        model, axis, prompt, wrong, along=along, verb_first=True,
        max_new=args.new, seed=args.seed,
      )  # fmt: skip
      text, far = " ".join(text.split()), float(np.abs(strengths).mean())
      print(f"  {label}: {text}")
      rows.append(
        {
          "model": name, "prompt": prompt, "along": label,
          "number": "as it is" if along is None else wrong,
          "separations": far, "text": text,
        }
      )  # fmt: skip
  return rows


def prompts(model, test, turn, n):
  """What is continued, and whether it is plural.

  PROMPTS, and n of the task's of each number: those after which the model is
  likeliest to write the right verbs.
  """
  fixed = alike.written_by(model.tokenizer, PROMPTS)
  likely = turn["right"].sel(along="none").values
  plural = number_axis.is_plural(test)
  for mine in (~plural, plural):
    for i in np.flatnonzero(mine)[np.argsort(-likely[mine])][:n]:
      ids = test.clean[i, : test.lengths[i]].tolist()
      fixed[model.tokenizer.decode(ids)] = bool(plural[i])
  return fixed


if __name__ == "__main__":
  command_line.run(main)
