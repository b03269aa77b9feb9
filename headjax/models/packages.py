"""What is installed? Versions, and data files that packages carry.

Packages are located, never imported: only their files are of interest, and
importing them would run their code.
"""

import importlib.util
import pathlib
from importlib import metadata

from headjax.checks import check


def data_folder(package: str, install: str) -> pathlib.Path:
  """The folder of an installed package, found without importing it.

  Args:
    package: the import name.
    install: the command that installs it, quoted in the error.

  Raises:
    ValueError: if the package is not installed.
  """
  spec = importlib.util.find_spec(package)
  check(
    spec is not None and spec.origin is not None,
    "package",
    f"no installed {package}",
    f"{package} in this environment",
    f"run: {install}",
  )
  return pathlib.Path(spec.origin).parent


def installed_version(package: str) -> str:
  """The version of a distribution, or "not installed", as of a checkout."""
  try:
    return metadata.version(package)
  except metadata.PackageNotFoundError:
    return "not installed"
