"""How does a script end? With status 0, or with one line that says why not."""

import argparse
import os
import pathlib
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

import jax

from headjax.checks import fail


class Parser(argparse.ArgumentParser):
  """An argument parser whose complaints are one line, like all others."""

  def __init__(self, description: str):
    """Makes a parser that knows `--debug` and takes no abbreviations."""
    super().__init__(
      description=description,
      allow_abbrev=False,
      formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    self.add_argument(
      "--debug", action="store_true", help="show the traceback of an error"
    )

  def error(self, message: str) -> NoReturn:
    """Raises the complaint for `run` to print."""
    raise ValueError(f"{message}; --help lists the options")


def run(
  main: Callable[[Sequence[str]], None], argv: Sequence[str] | None = None
) -> NoReturn:
  """Runs a script's `main` and exits with the status that it earned.

  ValueError and OSError, which are what bad input and bad files raise, become
  one line on standard error and status 2; `--debug` adds the traceback. An
  interrupt gives status 130. Anything else is a defect and is not caught.

  Args:
    main: takes the arguments and parses them with a `Parser`.
    argv: the arguments; None means those of the process.

  Raises:
    SystemExit: always.
  """
  argv = sys.argv[1:] if argv is None else argv
  keep_compilations()
  try:
    main(argv)
  except KeyboardInterrupt:
    print("interrupted", file=sys.stderr)
    sys.exit(130)
  except (ValueError, OSError) as error:
    if "--debug" in argv:
      traceback.print_exc()
    line = " ".join(str(error).split()) or type(error).__name__
    print(f"error: {line}", file=sys.stderr)
    sys.exit(2)
  sys.exit(0)


def keep_compilations() -> pathlib.Path | None:
  """Keeps compiled programs on disk, so that a second run starts at once.

  They go to `JAX_COMPILATION_CACHE_DIR` when that is set, else to
  `$XDG_CACHE_HOME/headjax` or `~/.cache/headjax`. Where that folder cannot be
  made, programs are compiled anew: slower, and nothing else.

  Returns:
    The folder, or None when the environment chose one or none can be made.
  """
  if "JAX_COMPILATION_CACHE_DIR" in os.environ:
    return None
  try:
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(home) / "headjax"
    folder.mkdir(parents=True, exist_ok=True)
    writable_folder(folder)
  except (OSError, RuntimeError, ValueError):  # RuntimeError: no home
    return None
  jax.config.update("jax_compilation_cache_dir", str(folder))
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
  return folder


def writable_folder(path: str | os.PathLike) -> pathlib.Path:
  """Refuses an output folder that cannot be written; creates nothing.

  Scripts call it before they do any work; the folder itself is made by the
  first file in it.

  Args:
    path: the folder, which need not exist yet.

  Returns:
    The same path.

  Raises:
    ValueError: the folder, or the nearest parent that exists, is a file or
      refuses a new file.
  """
  path = pathlib.Path(path)
  nearest = path.absolute()
  while not os.path.lexists(nearest):
    nearest = nearest.parent
  try:
    # Permissions alone do not tell (root, read-only mounts): try it.
    with tempfile.TemporaryFile(dir=nearest):
      return path
  except OSError as error:
    fail(
      "output folder",
      path,
      "a folder that can be written",
      f"choose another one ({nearest}: {error.strerror})",
    )
