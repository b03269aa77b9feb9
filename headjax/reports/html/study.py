"""What does every study's script do in the end? Write OUT/report.html."""

import argparse
import os
from collections.abc import Sequence

from headjax.reports.html import commands
from headjax.reports.html.page import write_page

NAME = "report.html"


def add_option(parser: argparse.ArgumentParser) -> None:
  """Lets the user of a script do without a report."""
  parser.add_argument(
    "--no-report", action="store_true", help=f"do not write OUT/{NAME}"
  )


def finish(
  out: str | os.PathLike,
  script: str,
  argv: Sequence[str],
  *,
  tables: str,
  measured: bool = True,
) -> None:
  """Notes how OUT was made, and writes its report unless told not to.

  Args:
    out: the folder that the script wrote to.
    script: such as `experiments/head_patching.py`.
    argv: its arguments; with `--no-report` only the call is noted.
    tables: the call that makes the tables again, from what OUT holds.
    measured: whether the call measured anything.
  """
  commands.record(out, script, argv, tables=tables, measured=measured)
  if "--no-report" not in argv:
    write_page([out], os.path.join(out, NAME))
