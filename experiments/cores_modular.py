r"""How does the core of modular addition form and grow, and when?

With `--config modular` (the paper's) or `modular-small` (for a first look)
models are trained to grok, and their cores are measured along training, with
and without weight decay. With `--config sweep` (the paper's, for accelerators)
or `sweep-cpu` the times to grok are measured over weight decay and modulus, and
fitted. OUT gets what was measured (`*.nc`), the same as tables (CSV), figures,
and the state of the training: the same command goes on after it was stopped.

  python experiments/cores_modular.py --config modular-small --out results/small
  python experiments/cores_modular.py --config modular --out results/modular
  python experiments/cores_modular.py --config sweep-cpu --out results/sweep
"""

import dataclasses
import json
import shlex
import sys
import time

import numpy as np

from configs import base
from configs.cores import get_config
from headjax import command_line, results
from headjax.checks import check
from headjax.data.modular import additions
from headjax.files import write_text
from headjax.reports.core_figures import Panel, line_figure, spectrum_figure
from headjax.reports.delay_figures import delay_figure
from headjax.reports.figures import save_figure
from headjax.reports.html import study
from headjax.reports.rows import save_rows, text_table
from headjax.studies.cores import grokking, modular, sweeps
from headjax.studies.cores.members import setup
from headjax.studies.cores.tables import Text, labelled, provenance
from headjax.training.optimizer import DECAYING

ROWS = "rows.json"
CURVES = (
  Panel(
    "accuracy", "epoch",
    {"train accuracy": "shown", "test accuracy": "kept back"},
    "epoch", "accuracy", limits=(0, 1.05),
  ),
  Panel(
    "rank of the core", "epoch",
    {"sufficient rank": "sufficient", "necessary rank": "necessary"},
    "epoch", "dimensions", limits=(0, None),
  ),
  Panel(
    "map from c to c + 1", "epoch",
    {"r2 held out": "R2, held out", "unit share": "share near the circle"},
    "epoch", "share", limits=(0, 1.05),
  ),
)  # fmt: skip
PRINTED = (
  "branch", "epoch", "model", "train accuracy", "test accuracy", "rank",
  "sufficient rank", "necessary rank", "near unit", "eigenvalues", "distance",
  "modes", "r2", "r2 held out",
)  # fmt: skip


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--config", default="modular", help="default modular")
  parser.add_argument("--out", required=True, help="folder for the results")
  parser.add_argument("--p", type=int, help="modulus; default the config's")
  parser.add_argument("--epochs", type=int, help="default the config's")
  parser.add_argument("--branch", type=int, help="default the config's")
  parser.add_argument("--every", type=int, help="default the config's")
  parser.add_argument("--dropout", type=float, help="default the config's")
  parser.add_argument(
    "--decaying", choices=DECAYING, help="what decays; default the config's"
  )
  study.add_option(parser)
  args = parser.parse_args(argv)
  check(
    args.dropout is None or 0 <= args.dropout < 1, "--dropout", args.dropout,
    "0 or more, below 1", "lower it",
  )  # fmt: skip
  for name, least in {"p": 3, "epochs": 1, "branch": 0, "every": 1}.items():
    got = getattr(args, name)
    check(
      got is None or got >= least, f"--{name}", got, f"at least {least}",
      "raise it",
    )  # fmt: skip
  return args


def main(argv):
  """Trains, measures and writes."""
  args = parse(argv)
  out = command_line.writable_folder(args.out)
  config = get_config(args.config)
  check(
    args.config != "markov", "--config", args.config, "one of modular addition",
    "use experiments/cores_markov.py",
  )  # fmt: skip
  changes = {
    "p": args.p,
    "train.epochs": args.epochs,
    "train.branch": args.branch,
    "train.every": args.every,
    "train.dropout": args.dropout,
    "train.decaying": args.decaying,
  }
  base.override(config, {k: v for k, v in changes.items() if v is not None})
  train = config.train
  check(
    train.branch <= train.epochs, "--branch", train.branch,
    f"at most --epochs {train.epochs}", "branch earlier, or train longer",
  )  # fmt: skip
  start = time.perf_counter()
  if config.sweep.p or config.sweep.weight_decay:
    sweep(config, out)
  else:
    follow(config, out)
  again = f"python experiments/cores_modular.py {shlex.join(argv)}"
  study.finish(out, "experiments/cores_modular.py", argv, tables=again)
  print(f"\n{time.perf_counter() - start:.0f} s; written to {out}")


def follow(config, out):
  """Cores along training."""
  began = time.perf_counter()
  sums = Text.of(f"sums modulo {config.p}", additions(config.p).test)
  moments = modular.moments(
    setup(config, d_vocab=config.p),
    config.p,
    modular.measured_epochs(config.train),
    config.train.branch,
    out,
  )
  rows = rows_so_far(out)
  for moment in moments:
    if (moment.branch, moment.epoch) in {
      (r["branch"], r["epoch"]) for r in rows
    }:
      continue  # measured before the run was stopped
    some = [modular.core_row(moment, m, config.p) for m in moment.models]
    print(text_table(some, PRINTED), file=sys.stderr)
    rows += some
    write_text(out / ROWS, json.dumps(rows))
  save_rows(rows, out / "cores.csv")
  attrs = provenance(
    moment.models, sums, time.perf_counter() - began, config=config.to_json()
  )
  found = labelled(rows, ("branch", "epoch", "model"), attrs)
  results.save(found, out / "cores.nc")
  for branch in dict.fromkeys(row["branch"] for row in rows):
    mine = [row | _unit(row) for row in rows if row["branch"] == branch]
    title = f"p = {config.p}, " + (
      "weight decay" if branch == "decay" else "no weight decay"
    )
    figure = line_figure(mine, CURVES, title=title, by="model")
    save_figure(figure, out / f"cores-{branch}")
  draw_spectra(rows, config.p, out)
  last = max(row["epoch"] for row in rows)
  print(text_table([r for r in rows if r["epoch"] == last], PRINTED))


def rows_so_far(out):
  """What a run that was stopped had measured; states follow their rows."""
  path = out / ROWS
  return json.loads(path.read_text()) if path.exists() else []


def draw_spectra(rows, p, out):
  """The first model's map early, in between and late, under weight decay."""
  mine = [r for r in rows if (r["branch"], r["model"]) == ("decay",
          rows[0]["model"]) and r["epoch"]]  # fmt: skip
  places = sorted({0, len(mine) // 3, len(mine) - 1})
  found = {
    f"epoch {mine[i]['epoch']}, test {mine[i]['test accuracy']:.2f}":
    modular.spectrum(mine[i])
    for i in places
  }  # fmt: skip
  roots = np.exp(2j * np.pi * np.arange(p) / p)
  title = f"From the sum c to c + 1, p = {p}"
  save_figure(spectrum_figure(found, roots, title=title), out / "spectra")


def sweep(config, out):
  """Times to grok, and fits."""
  times = []
  for p in config.sweep.p:
    whole = dataclasses.replace(
      setup(config, d_vocab=p), batch_size=p * p
    )  # the whole training part is a batch
    times += grokking.grok_times(
      whole, p, [1.0], config.train.every, out / f"state-p{p}.npz"
    )
    report(times, out)
  decays = []
  if config.sweep.weight_decay:
    one = setup(config, d_vocab=config.p)
    decays = grokking.grok_times(
      one, config.p, config.sweep.weight_decay, config.train.every,
      out / "state-weight-decay.npz",
    )  # fmt: skip
    report(times + decays, out)
  for field, mine in {"p": times, "weight_decay": decays}.items():
    if mine:
      show(field, mine, out)


def report(times, out):
  """Writes all runs so far."""
  save_rows(run_rows(times), out / "runs.csv")


def run_rows(times):
  """One row a run, with its delay."""
  return [one._asdict() | {"delay": one.delay} for one in times]


def show(field, times, out):
  """Prints one sweep's points and fits, and draws it."""
  rows = sweeps.point_rows(times, field)
  save_rows(rows, out / f"{field}.csv")
  print(f"\n{text_table(rows, rows[0])}")
  told = sweeps.censoring(times, field)
  print(
    f"{told['censored']} of {told['runs']} runs never grokked; "
    f"{told['left out']} of {len(rows)} points have no median and are in no fit"
  )
  known, law = [row for row in rows if row["delay"] > 0], {}
  if len(known) >= 2:
    law = sweeps.power_law(times, field)
    save_rows([law], out / f"{field}-law.csv")
    print(
      f"delay ~ {field}^{law['exponent']:.2f} "
      f"[{law['low']:.2f}, {law['high']:.2f}], of {law['points']} points"
    )
    fit = theory(field, times)
    save_rows([fit], out / f"{field}-theory.csv")
    print(", ".join(f"{name} = {x:.3g}" for name, x in fit.items()))
  if known:
    figure = delay_figure(
      run_rows(times), rows, field, exponent=law.get("exponent")
    )
    save_figure(figure, out / field)


def theory(field, times):
  """The constants of the paper's law, in epochs and moduli."""
  if field == "p":
    return sweeps.critical_modulus(times)
  return sweeps.inverse_decay(times)


def _unit(row):
  """The share of eigenvalues that lie near the circle."""
  return {"unit share": row["near unit"] / max(1, row["eigenvalues"])}


if __name__ == "__main__":
  command_line.run(main)
