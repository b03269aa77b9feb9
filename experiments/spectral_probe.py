r"""Which heads are a circuit? Spectrum, screens and ablations of any model.

MODELS are names, folders, files or RUN@STEP; with --series they are folders of
checkpoints, each measured at all of its steps. Of several models (seeds) every
circuit is also ablated in every other one. OUT gets, for each model, what was
measured (`heads.nc`, `ablations.nc`), and tables and figures made from that,
all of which `report.html` shows.

  python experiments/spectral_probe.py --models smollm2-135m --rows 256 \
    --out results/spectral/smollm2
  python experiments/spectral_probe.py --models runs/learned-seed* --series \
    --length 128 --out results/spectral/seeds

Rows are random tokens with A B once and A at the end (`random`), windows of a
text in which a token comes again (`natural`, with --text), or sentences with
an indirect object (`names`). With all 2,000 rows, as in the paper, a model of
135 million parameters takes hours on a laptop; with 256, well below one.
"""

import pathlib

import numpy as np

from headjax import command_line, load_model, results
from headjax.checks import check
from headjax.data.indirect_object import indirect_objects
from headjax.data.induction import natural_induction, random_induction
from headjax.interventions.chunks import GIB
from headjax.interventions.series import measure_series
from headjax.models.series import find_series, load_series
from headjax.reports import spectral_bars, spectral_figures
from headjax.reports.figures import save_figure
from headjax.reports.html import study
from headjax.reports.rows import save_rows, text_table
from headjax.studies.spectral import (
  controls,
  development,
  screen,
  seeds,
  tables,
  trajectory,
  verify,
)
from headjax.studies.spectral.measuring import measure

PROBES = ("names", "natural", "random")


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--models", nargs="+", required=True, help="see above")
  parser.add_argument("--series", action="store_true", help="see above")
  parser.add_argument("--out", required=True, help="folder for the results")
  parser.add_argument("--probe", default="random", choices=PROBES)
  parser.add_argument("--text", help="a text file, for natural rows")
  parser.add_argument("--rows", type=int, default=2000, help="default 2000")
  parser.add_argument("--length", type=int, default=256, help="tokens (256)")
  parser.add_argument(
    "--ablation-rows", type=int, help="of these, for step 3; default all"
  )
  parser.add_argument("--draws", type=int, default=controls.DRAWS)
  parser.add_argument("--null", type=int, default=500, help="draws (500)")
  parser.add_argument("--budget-gib", type=float, default=2.0)
  study.add_option(parser)
  args = parser.parse_args(argv)
  for name in ("rows", "draws", "null"):
    value = getattr(args, name)
    check(value >= 1, f"--{name}", value, "at least 1", "ask for some")
  names = [short(spec) for spec in args.models]
  check(
    len(set(names)) == len(names),
    "--models",
    f"the names {', '.join(sorted(names))}",
    "different names",
    "rename a folder",
  )
  return args


def short(spec):
  """The name of a model's folder among the results."""
  return pathlib.Path(spec).resolve().name


def main(argv):
  """Measures every model, then what circuits do in one another."""
  args = parse(argv)
  out = command_line.writable_folder(args.out)
  budget = int(args.budget_gib * GIB)
  points, measured = {}, {}
  for spec in args.models:
    series = find_series(spec) if args.series else None
    model = last_of(series) if series else load_model(spec)
    name = short(spec)
    probe = make_probe(model, args)
    found = measure_all(model, series, probe, args, budget)
    results.save(found, out / name / "heads.nc")
    points[name] = lambda spec=spec, series=series: (
      last_of(series) if series else load_model(spec)
    )
    measured[name] = found, probe
    show_heads(name, found, out)
    ablate(name, model, found, probe, args, budget, out)
    del model
  overview(measured, out)
  if len(measured) > 1:
    exchange(points, measured, args, budget, out)
  study.finish(out, "experiments/spectral_probe.py", argv, tables=again(out))
  print(f"\nwritten to {out}")


def again(out):
  """The calls that make the tables of a model again."""
  load = "headjax.results.load"
  tables = "headjax.studies.spectral.tables"
  return (
    f'{tables}.of_measurement({load}("{out}/MODEL/heads.nc")), '
    f'{tables}.verdicts({load}("{out}/MODEL/ablations.nc"))'
  )


def last_of(series):
  """The model of a series' last checkpoint."""
  return next(load_series(series[-1:]))[1]


def make_probe(model, args):
  """The rows that are asked."""
  if args.probe == "random":
    return random_induction(
      model.config.d_vocab, model.config.n_ctx, args.rows, length=args.length
    )
  check(
    model.tokenizer is not None, "--probe", args.probe,
    "random for a model without a tokenizer", "choose random rows",
  )  # fmt: skip
  if args.probe == "names":
    return indirect_objects(model.tokenizer, args.rows)
  check(bool(args.text), "--text", args.text, "a file", "name a text file")
  ids = model.tokenizer.encode(pathlib.Path(args.text).read_text("utf-8"))
  whole = len(ids) // args.length
  check(
    whole >= 1, "--text", f"{len(ids)} tokens", f"at least {args.length}",
    "take a longer text",
  )  # fmt: skip
  windows = np.array(ids[: whole * args.length]).reshape(whole, args.length)
  name = f"natural induction, {pathlib.Path(args.text).name}"
  probe = natural_induction(windows, name=name)
  return probe.select(slice(args.rows))


def measure_all(model, series, probe, args, budget):
  """One checkpoint, or all of them."""
  options = {"draws": args.null, "budget_bytes": budget, "progress": True}
  if not series:
    return measure(model, probe, **options)
  return measure_series(
    load_series(series), lambda one: measure(one, probe, **options)
  )


def show_heads(name, found, out):
  """Prints the circuits, and writes tables and figures of steps 1 and 2."""
  final = trajectory.last(found)
  made = tables.of_measurement(found)
  for table, rows in made.items():
    save_rows(rows, out / name / "tables" / f"{table}.csv")
  print(f"\n{name}: {found.sizes['layer']} x {found.sizes['head']} heads")
  for kind in final.kind.values.tolist():
    heads = screen.members(final, kind)
    best = screen.top(final, kind, 3)
    print(
      f"  {kind:12} {len(heads):3} of at least {screen.MEMBER:g} times;"
      f" strongest {spelt(best)}"
    )
  print(text_table(made["conserved"], made["conserved"][0]))
  figures = out / name / "figures"
  kinds = screen.classes(final).values
  values = screen.selectivity(final)
  save_figure(
    spectral_figures.selectivity_maps(
      values.values, values.kind.values.tolist(),
      title=f"{name}: selectivity of all heads", threshold=screen.MEMBER,
    ),
    figures / "selectivity",
  )  # fmt: skip
  if "step" not in found.dims:
    return
  ordered = trajectory.ordered(found)
  save_figure(
    spectral_figures.ratio_trajectories(
      ordered.step.values, ordered.ratio.sel(measure="entropy").values, kinds,
      title=f"{name}: participation ratios",
    ),
    figures / "trajectories",
  )  # fmt: skip
  if "integral" in made:
    figure = spectral_figures.integral_ranking(
      made["integral"], title=f"{name}: heads by their integral"
    )
    save_figure(figure, figures / "integral")
  recalls = {k: made[f"recall_{k}"] for k in ("induction", "previous")}
  for kind, rows in recalls.items():
    first = development.first_detection(rows)
    when = f"step {first['step']} ({first['share']:.1%})" if first else "never"
    print(f"  two thirds of the final {kind} circuit: {when}")
  figure = spectral_bars.recall_curves(
    recalls, made["classes_by_step"], title=f"{name}: recall along training"
  )
  save_figure(figure, figures / "recall")


def spelt(heads):
  """Heads as text."""
  return ", ".join(f"L{layer}H{head}" for layer, head in heads)


def ablate(name, model, found, probe, args, budget, out):
  """Step 3 for the circuits of one model."""
  made = tables.circuits(found)
  if not made:
    print("  no circuit: nothing to ablate")
    return
  swept = verify.verify(
    model, probe.select(slice(args.ablation_rows)), made,
    draws=args.draws, budget_bytes=budget, progress=True,
  )  # fmt: skip
  results.save(swept, out / name / "ablations.nc")
  judged = tables.verdicts(swept)
  save_rows(judged, out / name / "tables" / "verdicts.csv")
  save_rows(verify.rows(swept), out / name / "tables" / "ablations.csv")
  columns = (
    "circuit", "size", "verdict", "base_top1", "circuit_top1", "random_mean",
    "random_largest", "upper_top1", "logit_drop", "why",
  )  # fmt: skip
  print(text_table(judged, columns))
  figure = spectral_bars.ablation_bars(
    verify.shares(swept),
    {row["circuit"]: row["verdict"] for row in judged},
    title=f"{name}: without its circuits",
  )
  save_figure(figure, out / name / "figures" / "ablations")


def overview(measured, out):
  """A row a model: how many heads its circuits have, and what is conserved."""
  rows = []
  for name, (found, _) in measured.items():
    final = trajectory.last(found)
    part = screen.conserved(final, trajectory.signal(found))
    rows.append(
      {
        "model": name,
        "layers": final.sizes["layer"],
        "heads": final.sizes["layer"] * final.sizes["head"],
        "induction": len(screen.circuit(final, "induction")),
        "previous": len(screen.circuit(final, "previous")),
        "with_class": part.by_share[1.0],
        "above_null": part.above_null,
        "null_floor": part.floor,
      }
    )
  save_rows(rows, out / "models.csv")
  print("\n" + text_table(rows, rows[0]))


def exchange(points, measured, args, budget, out):
  """Every induction circuit gone in every model."""
  if len({found.attrs["model_config"] for found, _ in measured.values()}) > 1:
    print("\ndifferent architectures: no circuit fits another model")
    return
  circuits = {
    name: screen.circuit(trajectory.last(found), "induction")
    for name, (found, _) in measured.items()
  }
  if not any(circuits.values()):
    print("\nno model has an induction circuit: nothing to exchange")
    return
  probe = next(iter(measured.values()))[1].select(slice(args.ablation_rows))
  models = ((name, load()) for name, load in points.items())
  found = seeds.exchange(
    models, circuits, probe, draws=args.draws, budget_bytes=budget
  )
  for name, swept in found.items():
    results.save(swept, out / name / "exchange.nc")
  rows = seeds.matrix(found)
  save_rows(rows, out / "seeds.csv")
  print("\n" + text_table(rows, rows[0]))


if __name__ == "__main__":
  command_line.run(main)
