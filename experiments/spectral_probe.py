r"""Which heads are a circuit? Spectrum, screens and ablations of any model.

MODELS are names, folders, files or RUN@STEP; with --series they are folders of
checkpoints, each measured at all of its steps. Of several models with one
architecture (seeds) every circuit is also ablated in every other one. OUT gets,
for each model, what was measured (`heads.nc`, `ablations.nc`), and tables and
figures made from that, all of which `report.html` shows.

  python experiments/spectral_probe.py --models smollm2-135m --rows 256 \
    --out results/spectral/smollm2
  python experiments/spectral_probe.py --models runs/tiny-seed* --series \
    --length 128 --out results/spectral/seeds

What is there already, for the same weights and rows, is skipped, and ablated
groups are kept as they are done, so the same command goes on where it was
stopped. Every printed number can be made again, without a model:

  python experiments/spectral_probe.py --out results/spectral/seeds --tables

Rows are random tokens with A B once and A at the end (`random`), windows of a
text in which a token comes again (`natural`, with --text), questions for a code
in the toy language or, with --text, in a corpus (`keys`), or sentences with an
indirect object (`names`). With 256 rows a model of 135 million parameters takes
one to two hours of two cores.
"""

import json
import pathlib
import shlex

import numpy as np

from headjax import command_line, load_model
from headjax.checks import check
from headjax.data.indirect_object import indirect_objects
from headjax.data.induction import natural_induction, random_induction
from headjax.data.keys import KeyedText, Keys, key_retrieval
from headjax.data.token_files import open_corpus
from headjax.interventions.chunks import GIB
from headjax.interventions.series import measure_series
from headjax.models.series import find_series, load_series
from headjax.reports import spectral_output as output
from headjax.reports.html import study
from headjax.reports.rows import text_table
from headjax.studies.spectral import controls, seeds, tables, verify
from headjax.studies.spectral.measuring import measure
from headjax.studies.spectral.screen import circuit
from headjax.studies.spectral.store import (
  ABLATIONS,
  EXCHANGE,
  HEADS,
  KEY,
  Store,
)
from headjax.studies.spectral.trajectory import last

SCRIPT = "experiments/spectral_probe.py"
PROBES = ("keys", "names", "natural", "random")
COLUMNS = (
  "circuit", "size", "verdict", "base_top1", "circuit_top1", "random_mean",
  "random_largest", "upper_top1", "logit_drop", "why",
)  # fmt: skip


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--models", nargs="+", default=[], help="see above")
  parser.add_argument("--series", action="store_true", help="see above")
  parser.add_argument("--out", required=True, help="folder for the results")
  parser.add_argument("--probe", default="random", choices=PROBES)
  parser.add_argument(
    "--text", help="a text file for natural rows; a corpus for keys"
  )
  parser.add_argument("--rows", type=int, default=2000, help="default 2000")
  parser.add_argument("--length", type=int, default=256, help="tokens (256)")
  parser.add_argument(
    "--ablation-rows", type=int, help="of these, for step 3; default all"
  )
  parser.add_argument("--draws", type=int, default=controls.DRAWS)
  parser.add_argument("--null", type=int, default=500, help="draws (500)")
  parser.add_argument("--budget-gib", type=float, default=2.0)
  parser.add_argument(
    "--shift", type=int, help="of a series: last step before other data"
  )
  parser.add_argument(
    "--tables", action="store_true", help="measure nothing: tables and figures"
  )
  study.add_option(parser)
  args = parser.parse_args(argv)
  check(
    bool(args.models) != args.tables,
    "options",
    f"{len(args.models)} models{' and --tables' * args.tables}",
    "--models, or --tables alone",
    "see --help",
  )
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
  """Measures what is missing, then makes tables and figures."""
  args = parse(argv)
  out = command_line.writable_folder(args.out)
  store = Store(pathlib.Path(out))
  specs = {short(spec): spec for spec in sorted(args.models, key=short)}
  for name, spec in specs.items():
    measure_one(name, spec, store, args)
    show(name, store, args.shift)
  exchange(specs, store, args)
  if args.tables:
    for name in store.every(HEADS):
      show(name, store, args.shift)
  show_all(store)
  study.finish(out, SCRIPT, argv, tables=again(args), measured=not args.tables)
  print(f"\nwritten to {out}")


def again(args):
  """The call that makes the tables again, without a model."""
  shift = [] if args.shift is None else ["--shift", str(args.shift)]
  return shlex.join(["python", SCRIPT, "--out", args.out, "--tables", *shift])


def load(spec, args):
  """A model, or that of a series' last checkpoint."""
  if not args.series:
    return load_model(spec)
  return next(load_series(find_series(spec)[-1:]))[1]


def measure_one(name, spec, store, args):
  """Steps 1 to 3 of one model, unless they are there."""
  model = load(spec, args)
  probe = make_probe(model, args)
  found = measure_heads(name, spec, model, probe, store, args)
  made = tables.circuits(found)
  if not made:
    print(f"{name}: no circuit, nothing to ablate")
    return
  swept = verify.verify(
    model, probe.select(slice(args.ablation_rows)), made, draws=args.draws,
    budget_bytes=budget(args), folder=store.groups(name), progress=True,
  )  # fmt: skip
  store.save(name, ABLATIONS, swept)


def measure_heads(name, spec, model, probe, store, args):
  """Steps 1 and 2 of a checkpoint, or of all of them."""
  series = find_series(spec) if args.series else None
  weights = [point.digest for point in series] if series else model.digest
  key = json.dumps(
    {"weights": weights, "rows": probe.digest, "null": args.null}
  )
  found = store.measured(name, key)
  if found is not None:
    print(f"{name}: heads were measured before")
    return found
  options = {
    "draws": args.null, "budget_bytes": budget(args), "progress": True
  }  # fmt: skip
  if series:
    found = measure_series(
      load_series(series), lambda one: measure(one, probe, **options)
    )
  else:
    found = measure(model, probe, **options)
  found = found.assign_attrs({KEY: key, "parameters": model.n_params})
  store.save(name, HEADS, found)
  return found


def budget(args):
  """Bytes."""
  return int(args.budget_gib * GIB)


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
  if args.probe == "keys":
    return key_retrieval(keyed(model, args), args.rows, length=args.length)
  name, windows = text_windows(model, args)
  probe = natural_induction(windows, name=f"natural induction, {name}")
  return probe.select(slice(args.rows))


def keyed(model, args):
  """The text that has codes: of a folder of tokens, or the toy language."""
  if args.text is None:
    return Keys()
  text = open_corpus(
    args.text, sampling="replacement", d_vocab=model.config.d_vocab
  )
  return KeyedText(text, share=1.0, name=text.name)


def text_windows(model, args):
  """The name of a text file, and its tokens in rows."""
  check(bool(args.text), "--text", args.text, "a file", "name a text file")
  ids = model.tokenizer.encode(pathlib.Path(args.text).read_text("utf-8"))
  whole = len(ids) // args.length
  check(
    whole >= 1, "--text", f"{len(ids)} tokens", f"at least {args.length}",
    "take a longer text",
  )  # fmt: skip
  windows = np.array(ids[: whole * args.length]).reshape(whole, args.length)
  return pathlib.Path(args.text).name, windows


def exchange(specs, store, args):
  """Every induction circuit gone in every model of its architecture."""
  measured = {name: store.find(name, HEADS) for name in specs}
  groups = [names for names in seeds.alike(measured) if len(names) > 1]
  if len(specs) > 1 and not groups:
    print("\ndifferent architectures: no circuit fits another model")
  for names in groups:
    circuits = {n: circuit(last(measured[n]), "induction") for n in names}
    if not any(circuits.values()):
      print(f"\n{', '.join(names)}: no induction circuit to exchange")
      continue
    probe = make_probe(load(specs[names[0]], args), args)
    found = seeds.exchange(
      ((name, load(specs[name], args)) for name in names), circuits,
      probe.select(slice(args.ablation_rows)), draws=args.draws,
      budget_bytes=budget(args), folders={n: store.groups(n) for n in names},
    )  # fmt: skip
    for name, swept in found.items():
      store.save(name, EXCHANGE, swept)


def show(name, store, shift):
  """Writes tables and figures of one model, and prints the shortest."""
  found, swept = store.find(name, HEADS), store.find(name, ABLATIONS)
  made = output.save_model(found, swept, shift, store.folder / name)
  for line in output.about_model(name, found, made):
    print(line)
  print(text_table(made["conserved"], made["conserved"][0]))
  if swept is not None:
    print(text_table(made["verdicts"], COLUMNS))


def show_all(store):
  """The same of what is told of several models."""
  made = output.save_all(
    store.every(HEADS), store.every(EXCHANGE), store.folder
  )
  for rows in (made["models"], made["sizes"]):
    print("\n" + text_table(rows, rows[0]))
  for rows in map(seeds.wide, seeds.by_circuits(made.get("seeds", []))):
    print("\ndrop without a circuit, in brackets without random heads")
    print(text_table(rows, rows[0]))


if __name__ == "__main__":
  command_line.run(main)
