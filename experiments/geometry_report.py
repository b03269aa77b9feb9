r"""Which spaces do heads write and read, and how do they lie to each other?

For a row of configs/geometry.py, or a pretrained model: projection kernels of
all pairs of heads, self-alignment, the conservation identity and principal
angles. OUT gets pairs.csv, heads.csv, conservation.csv, angles.csv and
summary.csv, and the pictures writes, reads, alignment and angles (.png, .pdf).

  python experiments/geometry_report.py --config write-common-axis \
    --out results/geometry-write-common-axis
  python experiments/geometry_report.py --model smollm2-135m \
    --out results/geometry-smollm2

Either takes about a minute on two cores. Where a configuration learns, its
parameters are as initialised by the row's seed. With --table, prints all rows.
"""

import os

# Many small decompositions are slower in several threads of BLAS.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import csv
import sys

import jax
import jax.numpy as jnp
import numpy as np

from configs import geometry
from headjax import command_line, load_model
from headjax.checks import check
from headjax.files import atomic
from headjax.geometry.survey import Survey, survey
from headjax.models import spaces, weights
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder
from headjax.models.from_config import model_config
from headjax.reports import geometry_figures as figures
from headjax.reports import geometry_tables as tables
from headjax.reports.alignment_figure import alignment_figure
from headjax.reports.figures import save_figure

KINDS = {"weights": "by its weights alone", "norm": "through its norm"}


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--config", help="a row of configs/geometry.py")
  parser.add_argument("--model", help="a name, a folder or a .gguf file")
  parser.add_argument("--out", help="folder for the results")
  parser.add_argument(
    "--table", action="store_true", help="print one CSV line a row, and end"
  )
  args = parser.parse_args(argv)
  one = bool(args.config) != bool(args.model)
  check(
    args.table or (one and args.out),
    "options",
    f"--config {args.config}, --model {args.model}, --out {args.out}",
    "--config or --model, and --out; or --table alone",
    "see --help",
  )
  return args


def main(argv):
  """Measures one model, or prints the table of all rows."""
  args = parse(argv)
  if args.table:
    print_table()
    return
  out = command_line.writable_folder(args.out)
  name, about, config, params = described_model(args)
  read = {
    kind: {
      letter: spaces.read_spaces(params, config, letter, folded=kind == "norm")
      for letter in spaces.inputs(config)
    }
    for kind in KINDS
  }
  found = survey(spaces.write_spaces(params, config), read)
  draw(found, config, name, about, out)
  summary = tables.summary(found)
  for line in summary:
    print(f"{line['quantity']:<38} {line['value']}")
  for table, rows in {
    "summary": summary,
    "pairs": tables.pairs(found),
    "heads": tables.heads(found),
    "conservation": tables.conservation(found),
    "angles": tables.angles(found),
  }.items():
    with atomic(out / f"{table}.csv") as part, open(part, "w") as file:
      write_rows(rows, file)
  print(f"\nwritten to {out}")


def described_model(args):
  """(name, a line about it, config, params) of what was asked for."""
  if args.model:
    model = load_model(args.model)
    return model.name, sizes(model.config), model.config, model.params
  row = geometry.get_config(args.config)
  config = model_config(row.model)
  init = jax.jit(Decoder(config).init)
  key = jax.random.key(row.seed)
  params = init(key, jnp.zeros((1, 1), jnp.int32))["params"]
  about = f"{sizes(config)}; learned parts as initialised by seed {row.seed}"
  return row.name, about, config, params


def sizes(config: ModelConfig) -> str:
  """The sizes in words."""
  return (
    f"{config.n_layers} layers of {config.n_heads} heads, d_model"
    f" {config.d_model}, d_head {config.d_head}"
  )


def draw(found: Survey, config: ModelConfig, name, about, out):
  """Draws the four pictures."""
  width, d_model = config.d_head, config.d_model
  label = {"title": name, "about": about}
  scale = {"width": width, "random": width**2 / d_model}
  read_pk = {KINDS[kind]: row for kind, row in found.read_pk.items()}
  share = found.excess("norm", "V") / found.read_rank["norm"]["V"][..., None]
  pictures = {
    "writes": figures.write_figure(found.write_pk, **scale, **label),
    "reads": figures.read_figure(read_pk, **scale, **label),
    "alignment": alignment_figure(
      *found.alignment, share, random=width / d_model, **label
    ),
    "angles": figures.angle_figure(found.angles, **label),
  }
  for picture, figure in pictures.items():
    save_figure(figure, out / picture)


def print_table():
  """Prints every row of the configuration with its parameters."""
  rows = []
  for name in geometry.VARIANTS:
    row = geometry.get_config(name)
    others = {
      other: corpus
      for other, (of, corpus, _) in geometry.REPOSITORY_NAMES.items()
      if of == name
    }
    config = model_config(row.model)
    rows.append(
      {
        "name": name,
        "repository names": " ".join(others),
        "corpus": " ".join(others.values()) or row.data.corpus,
        "write": described_write(row.model),
        "read": described_read(row.model),
        "parameters": sum(
          int(np.prod(shape)) for shape in weights.shapes(config).values()
        ),
      }
    )
  write_rows(rows, sys.stdout)


def described_write(model) -> str:
  """A write design in a few words."""
  write = model.write
  parts = [write.kind]
  if write.members != "none":
    parts.append({"common": "member 0", "layer": "member l"}[write.members])
  if write.routing != "none":
    parts.append(write.routing)
  if write.live is not None:
    parts.append(f"{write.live} of {model.d_head} live")
  if write.scale is not None:
    parts.append(f"scale {write.scale:g}")
  return ", ".join(parts)


def described_read(model) -> str:
  """A read design in a few words."""
  read = model.read
  parts = [read.kind]
  if read.kind != "free":
    parts.append(
      {
        "axis": "axis",
        "layer": "member l",
        "shifted": f"member l + {read.shift}",
      }[read.members]
    )
  if read.kind == "block" and read.restricted != "QKV":
    parts.append(f"{read.restricted} only")
  if model.value_adapter:
    parts.append(f"value adapter {model.value_adapter}")
  return ", ".join(parts)


def write_rows(rows, file):
  """Writes labelled rows as CSV."""
  writer = csv.DictWriter(file, rows[0], lineterminator="\n")
  writer.writeheader()
  writer.writerows(rows)


if __name__ == "__main__":
  command_line.run(main)
