"""Which texts is a corpus made of? A stream of documents, always in one order.

A source can be read from any document on, so that an interrupted preparation
goes on where it stopped.
"""

import dataclasses
import hashlib
import itertools
import json
import os
import pathlib
import zlib
from collections.abc import Callable, Iterator

from headjax.checks import check, fail
from headjax.data.packed_files import PACKINGS, open_text

_ENDINGS = (".txt", ".md", ".jsonl")


@dataclasses.dataclass(frozen=True)
class Source:
  """Documents in a fixed order.

  Attributes:
    name: what to call the source.
    licences: one line per text, as far as the source states them.
    identity: equal for equal documents in equal order, as far as that can be
      told without reading them all.
    read: the documents from a given number on, counted from 0.
    packages: distributions that take part, for the record of versions.
  """

  name: str
  licences: tuple[str, ...]
  identity: str
  read: Callable[[int], Iterator[str]] = dataclasses.field(repr=False)
  packages: tuple[str, ...] = ()


def from_folder(path: str | os.PathLike, *, field: str = "text") -> Source:
  """The files of a folder, in the order of their paths.

  A `.txt` or `.md` file is one document; a `.jsonl` file has one a line. Each
  may be packed (`.gz`, `.zst`). Other files and hidden ones are left alone.

  Args:
    path: the folder; its subfolders count too.
    field: the key of the text in a JSON object.

  Raises:
    ValueError: no folder, or none of these files in it; while reading, a file
      or line that holds no text.
  """
  path = pathlib.Path(path)
  check(
    path.is_dir(),
    "source",
    f"no folder {path}",
    "a folder of texts",
    "check the path",
  )
  files = sorted(
    (file for file in path.rglob("*") if _is_text(file, path)),
    key=lambda file: file.relative_to(path).as_posix(),
  )
  check(
    bool(files),
    f"source {path}",
    "no such file",
    "files ending in " + ", ".join(_ENDINGS) + ", plain, .gz or .zst",
    "check the path",
  )
  names = [
    (file.relative_to(path).as_posix(), file.stat().st_size) for file in files
  ]

  def read(start):
    texts = itertools.chain.from_iterable(_read(file, field) for file in files)
    return itertools.islice(texts, start, None)

  return Source(
    name=path.absolute().name,
    licences=("as stated by whoever made the folder",),
    identity=digest([field, *names]),
    read=read,
    packages=("zstandard",) if any(f.suffix == ".zst" for f in files) else (),
  )


def digest(content) -> str:
  """The sha256, in hex, of something that JSON can hold."""
  return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _is_text(file, folder):
  """Whether something in a folder is a file to read."""
  parts = file.relative_to(folder).parts
  hidden = any(part.startswith(".") for part in parts)
  return not hidden and _ending(file) in _ENDINGS and file.is_file()


def _ending(file):
  """The ending of a file's name, that of its packing left aside."""
  packed = file.suffix in PACKINGS
  return (file.with_suffix("") if packed else file).suffix


def _read(file, field):
  """The documents of one file."""
  try:
    with open_text(file) as lines:
      if _ending(file) != ".jsonl":
        yield lines.read()
        return
      for number, line in enumerate(lines, 1):
        if line.strip():
          yield _text(f"{file}, line {number}", line, field)
  except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
    fail(str(file), error, "a readable file of UTF-8 text", "repair the file")


def _text(where, line, field):
  """The text of one JSON object."""
  try:
    content = json.loads(line)
  except (ValueError, RecursionError) as error:
    fail(where, error, "a JSON object", "write one object a line")
  text = content.get(field) if isinstance(content, dict) else None
  check(
    isinstance(text, str),
    f"{where}, field {field}",
    type(text).__name__,
    "text",
    "name the field that holds it",
  )
  try:
    text.encode()
  except UnicodeEncodeError as error:
    fail(f"{where}, field {field}", error, "text", "repair or drop the line")
  return text
