"""How does a user measure on their own prompts? A file of pairs as text."""

import json
import os
import pathlib

import numpy as np

from headjax.checks import check, fail
from headjax.data.pairs import PromptPairs, pad_right
from headjax.models.tokenizers import Tokenizer

_FIELDS = ("clean", "reference", "answer", "foil")


def from_jsonl(
  path: str | os.PathLike[str], tokenizer: Tokenizer
) -> PromptPairs:
  """Reads pairs of prompts, one JSON object a line, in the file's order.

  Every object has the text fields `clean`, `reference`, `answer` and `foil`;
  other fields are ignored, and so are blank lines. Clean and reference have
  equal numbers of tokens and may differ in several; lines may differ in
  length. Answer and foil are two different single tokens, with their leading
  space where they have one. No token is added to a prompt.

  Args:
    path: the file; its name without the suffix names the pairs.
    tokenizer: of the model that will be measured.

  Raises:
    ValueError: naming the file, the line and the field at fault.
  """
  path = pathlib.Path(path)
  rows = [
    _pair(f"{path}, line {number}", line, tokenizer)
    for number, line in enumerate(_lines(path), 1)
    if line.strip()
  ]
  check(bool(rows), path, "no pairs", "at least one line", "add a pair")
  clean, lengths = pad_right([row["clean"] for row in rows])
  reference, _ = pad_right([row["reference"] for row in rows])
  answer, foil = (
    np.array([row[field] for row in rows]) for field in ("answer", "foil")
  )
  return PromptPairs(
    clean, reference, answer, foil, lengths, name=path.stem, split="file"
  )


def _lines(path):
  """The lines of a text file; only a newline ends one."""
  try:
    return path.read_text(encoding="utf-8-sig").split("\n")
  except (OSError, UnicodeDecodeError) as error:
    fail(path, error, "a readable UTF-8 text file", "check the path")


def _pair(where, line, tokenizer):
  """The ids of one line, by field."""
  texts = _texts(where, line)
  ids = {field: tokenizer.encode(texts[field]) for field in _FIELDS[:2]}
  check(
    len(ids["clean"]) > 0,
    f"{where}, field clean",
    "no tokens",
    "a prompt",
    "write one",
  )
  check(
    len(ids["clean"]) == len(ids["reference"]),
    f"{where}, field reference",
    f"{len(ids['reference'])} tokens {_tokens(tokenizer, ids['reference'])}",
    f"{len(ids['clean'])} tokens, like clean "
    f"{_tokens(tokenizer, ids['clean'])}",
    "choose words with equal numbers of tokens",
  )
  for field in _FIELDS[2:]:
    ids[field] = tokenizer.single(texts[field])
    check(
      ids[field] is not None,
      f"{where}, field {field}",
      f"{texts[field]!r} = tokens "
      f"{_tokens(tokenizer, tokenizer.encode(texts[field]))}",
      "a single token",
      "choose another word, or mind its leading space",
    )
  check(
    ids["answer"] != ids["foil"],
    f"{where}, field foil",
    f"{texts['foil']!r}, the answer",
    "another token than the answer",
    "choose two different words",
  )
  return ids


def _texts(where, line):
  """The fields of one line, each of them text."""
  try:
    content = json.loads(line)
  except (ValueError, RecursionError) as error:
    fail(where, error, "a JSON object", "write one object a line")
  check(
    isinstance(content, dict),
    where,
    f"a {type(content).__name__}",
    "a JSON object",
    "write one object a line",
  )
  for field in _FIELDS:
    text = content.get(field)
    check(
      _is_text(text),
      f"{where}, field {field}",
      _what(content, field),
      "text",
      f"give each of {', '.join(_FIELDS)} as a string",
    )
  return content


def _is_text(value):
  """Whether a value is a string without half a surrogate pair."""
  return isinstance(value, str) and not any(
    "\ud800" <= character <= "\udfff" for character in value
  )


def _what(content, field):
  """What a field holds instead of text."""
  if field not in content:
    return "no such field"
  return f"{type(content[field]).__name__} {content[field]!a:.40}"


def _tokens(tokenizer, ids):
  """The tokens of a prompt, each as text; long prompts without their middle."""
  texts = [tokenizer.decode([i]) for i in ids]
  if len(texts) > 24:
    texts[12:-12] = ["..."]
  return texts
