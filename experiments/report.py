r"""What did a study find? Any result folder as one page to look at offline.

RESULTS are folders that scripts wrote to (--out); everything in them is shown:
heat maps of all heads that can be hovered and clicked, tables, figures, and
where the numbers come from. The page needs no network and no server.

  python experiments/report.py results/smollm2-sva --out smollm2-sva.html

The scripts of all studies write OUT/report.html in the end. Large parts that
would make the page larger than --most-mb are left out, and the page says which.
"""

import pathlib

from headjax import command_line
from headjax.checks import check
from headjax.reports.html.page import MOST_BYTES, write_page

MB = 1_000_000


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("results", nargs="+", metavar="RESULT", help="see above")
  parser.add_argument("--out", required=True, help="the .html file to write")
  parser.add_argument(
    "--most-mb",
    type=float,
    default=MOST_BYTES / MB,
    help=f"million bytes of the page, about (default {MOST_BYTES / MB:g})",
  )
  args = parser.parse_args(argv)
  out = pathlib.Path(args.out)
  check(
    out.suffix == ".html" and not out.is_dir(),
    "--out",
    args.out,
    "a .html file",
    "choose a name that ends with .html",
  )
  check(
    0 < args.most_mb <= 1000,
    "--most-mb",
    args.most_mb,
    "0 to 1000",
    "leave it out",
  )
  command_line.writable_folder(out.parent)
  return args


def main(argv):
  """Writes the page."""
  args = parse(argv)
  write_page(args.results, args.out, most_bytes=int(args.most_mb * MB))
  size = pathlib.Path(args.out).stat().st_size / MB
  print(f"written to {args.out} ({size:.1f} MB)")


if __name__ == "__main__":
  command_line.run(main)
