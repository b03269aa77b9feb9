r"""Do models of one Markov chain share its dynamics, and no direction?

Trains the models of the config in one program, extracts their cores, validates
them by edits and compares them. OUT gets what was measured (`*.nc`), the same
as tables (CSV), and figures.

  python experiments/cores_markov.py --out results/markov
"""

import shlex
import time

import numpy as np

from configs import base
from configs.cores import get_config
from headjax import command_line, results
from headjax.checks import check
from headjax.data import markov as chain
from headjax.reports.core_figures import Panel, line_figure, spectrum_figure
from headjax.reports.figures import save_figure
from headjax.reports.html import study
from headjax.reports.rows import save_rows, text_table
from headjax.studies.cores import markov, sharing
from headjax.studies.cores.members import setup
from headjax.studies.cores.tables import Text, labelled, provenance

RANKS = (1, 2, 3, 4, 6, 8, 16, 32, 64)
LABELS = {
  "models": ("model",),
  "pairs": ("models",),
  "consensus": ("model",),
  "curves": ("model", "rank"),
}


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--out", required=True, help="folder for the results")
  parser.add_argument("--config", default="markov", help="default markov")
  parser.add_argument("--epochs", type=int, help="default the config's")
  parser.add_argument(
    "--sequences", type=int, default=3000, help="to train on (default 3000)"
  )
  parser.add_argument(
    "--test", type=int, default=10_000,
    help="sequences for maps and correlations (default 10,000)",
  )  # fmt: skip
  parser.add_argument(
    "--scored", type=int, default=1000,
    help="of these, sequences for accuracies (default 1000)",
  )  # fmt: skip
  study.add_option(parser)
  args = parser.parse_args(argv)
  epochs = args.epochs
  check(
    epochs is None or epochs >= 1, "--epochs", epochs, "at least 1", "raise it"
  )
  check(args.config == "markov", "--config", args.config, "markov", "name it")
  for name in ("sequences", "test", "scored"):
    got = getattr(args, name)
    check(got >= 64, f"--{name}", got, "at least 64", "ask for more")
  return args


def main(argv):
  """Trains, measures and writes."""
  args = parse(argv)
  out = command_line.writable_folder(args.out)
  config = get_config(args.config)
  if args.epochs is not None:
    base.override(config, {"train.epochs": args.epochs})
  start = time.perf_counter()
  models = markov.train(setup(config), args.sequences)
  print(f"trained {len(models)} models in {time.perf_counter() - start:.0f} s")
  tokens = chain.sequences(args.test, markov.LENGTH, markov.TEST_SEED)
  subjects = [markov.Subject(model, tokens, args.scored) for model in models]
  tables = {
    "models": markov.model_rows(subjects),
    "pairs": sharing.pair_rows(subjects),
    "consensus": sharing.consensus_rows(subjects),
    "curves": markov.curve_rows(subjects, RANKS),
  }
  attrs = provenance(
    models, Text.of("markov chain", tokens), time.perf_counter() - start,
    scored=args.scored, sequences=args.sequences, config=config.to_json(),
  )  # fmt: skip
  for name, rows in tables.items():
    results.save(labelled(rows, LABELS[name], attrs), out / f"{name}.nc")
    save_rows(rows, out / f"{name}.csv")
  for name in ("models", "pairs", "consensus"):
    print(f"\n{text_table(tables[name], tables[name][0])}")
  draw(subjects, tables["curves"], out)
  again = f"python experiments/cores_markov.py {shlex.join(argv)}"
  study.finish(out, "experiments/cores_markov.py", argv, tables=again)
  print(f"\n{time.perf_counter() - start:.0f} s; written to {out}")


def draw(subjects, curves, out):
  """Writes the two figures."""
  best = max(subject.accuracy() for subject in subjects)
  panel = Panel(
    "keep and remove", "rank", {"keep": "core kept", "remove": "core removed"},
    "rank", "accuracy", {"unedited": best, "chance": 1 / chain.N_STATES},
    log_x=True,
  )  # fmt: skip
  title = "Accuracy with the core alone, and without it"
  figure = line_figure(curves, [panel], title=title, by="model")
  save_figure(figure, out / "ranks")
  found = {s.model.name: s.operator().eigenvalues for s in subjects}
  expected = np.array(chain.nontrivial_eigenvalues())
  title = "From one state of the core to the next"
  save_figure(spectrum_figure(found, expected, title=title), out / "spectrum")


if __name__ == "__main__":
  command_line.run(main)
