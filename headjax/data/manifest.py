"""What does a folder of tokens say about itself? Its manifest.

A corpus is a folder: `manifest.json`, the shards `train-00000.bin` onwards,
`validation.bin` and `tokenizer.json`. A `.bin` file holds token ids, one after
the other, as little-endian unsigned integers of 16 bits, or of 32 where the
vocabulary has more than 65,536 ids; it has no header.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
from typing import Any

from headjax.checks import check
from headjax.files import atomic
from headjax.models.tensor_files import read_json

VERSION = 1
MANIFEST = "manifest.json"
TOKENIZER = "tokenizer.json"
VALIDATION = "validation.bin"
_KINDS = {
  "name": str,
  "source": dict,
  "licences": list,
  "tokenizer": dict,
  "d_vocab": int,
  "separator": int,
  "seed": int,
  "share": int,
  "documents": dict,
  "train": list,
  "validation": dict,
  "tokenizer_sha256": str,
  "packages": dict,
}
_FILE_KINDS = {"file": str, "tokens": int, "sha256": str}


@dataclasses.dataclass(frozen=True)
class Manifest:
  """The record of a corpus.

  Attributes:
    name: what to call the corpus.
    source: its `name`, and its `identity`: equal for equal documents.
    licences: of the texts, one a line.
    tokenizer: its `name`, `digest` and `bos` (an id or None).
    d_vocab: number of token ids; every id in the files is below.
    separator: the id that ends every document.
    seed: keys the choice of the validation documents.
    share: one document in so many is for validation.
    documents: of `train` and `validation`, how many; None of a validation
      file that was taken over from another corpus.
    train: the shards in order, each its `file`, `tokens` and `sha256`.
    validation: likewise, one file.
    tokenizer_sha256: of the file.
    packages: distributions that took part -> version.
    version: of this format.
  """

  name: str
  source: dict[str, str]
  licences: list[str]
  tokenizer: dict[str, Any]
  d_vocab: int
  separator: int
  seed: int
  share: int
  documents: dict[str, int | None]
  train: list[dict[str, Any]]
  validation: dict[str, Any]
  tokenizer_sha256: str
  packages: dict[str, str]
  version: int = VERSION

  @property
  def dtype(self) -> str:
    """NumPy's name of the integers in the files."""
    return dtype_of(self.d_vocab)

  @property
  def train_tokens(self) -> int:
    """Tokens of all shards."""
    return sum(file["tokens"] for file in self.train)

  @property
  def digest(self) -> str:
    """The sha256, in hex, of all that training reads: ids and vocabulary."""
    content = [
      self.d_vocab,
      self.tokenizer["digest"],
      [[file["tokens"], file["sha256"]] for file in self.train],
      [self.validation["tokens"], self.validation["sha256"]],
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()

  def write(self, folder: str | os.PathLike) -> None:
    """Writes `manifest.json` into a folder."""
    content = dataclasses.asdict(self) | {"dtype": self.dtype}
    with atomic(pathlib.Path(folder) / MANIFEST) as part:
      part.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def dtype_of(d_vocab: int) -> str:
  """NumPy's name of the smallest integers that hold every id."""
  return "<u2" if d_vocab <= 1 << 16 else "<u4"


def read_manifest(folder: str | os.PathLike) -> Manifest:
  """Reads the manifest of a corpus.

  Raises:
    ValueError: there is no corpus, its format is another, or its manifest is
      damaged.
  """
  path = pathlib.Path(folder) / MANIFEST
  check(
    path.is_file(),
    f"corpus {folder}",
    f"no {MANIFEST}" if path.parent.is_dir() else "no such folder",
    "a folder with a manifest",
    "prepare it with experiments/prepare_corpus.py",
  )
  content = read_json(path)
  check(
    content.get("version") == VERSION,
    f"{path}, field version",
    repr(content.get("version")),
    str(VERSION),
    "prepare the corpus with this version of headjax",
  )
  dtype = content.pop("dtype", None)
  manifest = _built(path, content)
  check(
    dtype == manifest.dtype,
    f"{path}, field dtype",
    repr(dtype),
    f"{manifest.dtype!r} for {manifest.d_vocab} ids",
    "prepare the corpus again",
  )
  return manifest


def _built(path, content):
  """The manifest, if every field is of its kind."""
  _check_kinds(str(path), content, _KINDS)
  kinds = {"name": str, "digest": str}
  _check_kinds(f"{path}, tokenizer", content["tokenizer"], kinds)
  for file in [*content["train"], content["validation"]]:
    _check_kinds(f"{path}, files", file, _FILE_KINDS)
    check(
      file["tokens"] >= 0 and file["file"] == pathlib.Path(file["file"]).name,
      f"{path}, files",
      file,
      "the name of a file in this folder and its number of tokens",
      "use an undamaged corpus",
    )
  return Manifest(**{field: content[field] for field in _KINDS})


def _check_kinds(where, content, kinds):
  """Fails unless all fields are there and of their kinds."""
  for field, kind in kinds.items():
    got = content.get(field) if isinstance(content, dict) else None
    check(
      type(got) is kind,
      f"{where}, field {field}",
      f"{got!r:.40}",
      f"a value of type {kind.__name__}",
      "use an undamaged corpus",
    )
