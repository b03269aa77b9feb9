"""How do documents become a corpus? Divided by their hash, encoded in parallel.

A document is for validation if the hash of its text says so, else for
training. So corpora made with one seed, of whatever sizes and from whatever
sources, never have a document in common between the training tokens of one
and the validation tokens of another.

The same command gives the same bytes, whatever the number of workers and
however often it was interrupted.
"""

import os
import pathlib
import shutil

from tqdm.auto import tqdm

from headjax.checks import check, fail
from headjax.data.documents import Source
from headjax.data.encoding import Encoder
from headjax.data.filling import SHARE, Filling
from headjax.data.manifest import (
  TOKENIZER,
  VALIDATION,
  Manifest,
  read_manifest,
)
from headjax.data.shards import PartialFolder
from headjax.data.token_files import check_files, sha256
from headjax.models.packages import installed_version

VALIDATION_TOKENS = 2_000_000  # at most, unless a number is asked for
_ALL = 1 << 62  # more tokens than there are


def prepare(
  source: Source,
  encoder: Encoder,
  folder: str | os.PathLike,
  *,
  train_tokens: int | None = None,
  validation_tokens: int | None = None,
  validation: str | os.PathLike | None = None,
  seed: int = 1729,
  workers: int = 2,
  shard_tokens: int = 1 << 26,
  batch_characters: int = 1 << 20,
  progress: bool = False,
) -> Manifest:
  """Makes the folder of a corpus, or goes on where an earlier call stopped.

  Blank documents are left out.

  Args:
    source: the documents.
    encoder: their vocabulary.
    folder: where the corpus will be; must not exist.
    train_tokens: exactly so many, from the source's start; None: all.
    validation_tokens: exactly so many; None: up to 2,000,000.
    validation: a corpus whose validation file this one shares, instead of
      making one.
    seed: keys the choice of the validation documents.
    workers: threads that encode.
    shard_tokens: a shard is finished when it holds so many or more.
    batch_characters: encoded at a time.
    progress: whether to show a bar.

  Returns:
    The manifest of the corpus.

  Raises:
    ValueError: the folder exists, or the source has fewer tokens than asked
      for, or none, or the other corpus does not fit to this one.
  """
  _check_numbers(train_tokens, validation_tokens, validation, workers)
  shared = None if validation is None else _shared(validation, encoder, seed)
  settings = {
    "source": source.identity,
    "tokenizer": [encoder.tokenizer.digest, encoder.separator],
    "tokens": [train_tokens, validation_tokens],
    "validation": shared and shared.validation,
    "seed": [seed, SHARE],
    "sizes": [shard_tokens, batch_characters],
  }
  partial = PartialFolder(pathlib.Path(folder), settings, encoder.dtype)
  try:
    most = _most(train_tokens, validation_tokens, shared)
    filling = Filling(partial, encoder, seed, most, shard_tokens)
    bar = tqdm(
      desc=source.name,
      initial=partial.train_tokens,
      total=train_tokens,
      unit=" tokens",
      unit_scale=True,
      disable=not progress,
    )
    with bar:
      filling.run(source, workers, batch_characters, bar)
    _check_amounts(partial, source, train_tokens, validation_tokens, shared)
    if shared:
      file = pathlib.Path(validation) / VALIDATION
      shutil.copyfile(file, partial.path / VALIDATION)
    (partial.path / TOKENIZER).write_text(
      encoder.tokenizer.backend.to_str(), encoding="utf-8"
    )
    manifest = _manifest(partial, source, encoder, seed, shared)
    check_files(partial.path, manifest)
    manifest.write(partial.path)
    partial.give_name()
  finally:
    partial.close()
  return manifest


def _most(train_tokens, validation_tokens, shared):
  """How many tokens of each split are taken."""
  train = _ALL if train_tokens is None else train_tokens
  held_out = validation_tokens
  if held_out is None:
    held_out = 0 if shared else VALIDATION_TOKENS
  return {"train": train, "validation": held_out}


def _least(train_tokens, validation_tokens, shared):
  """How many tokens of each split there have to be."""
  held_out = validation_tokens
  if held_out is None:
    held_out = 0 if shared else 1
  return {"train": train_tokens or 1, "validation": held_out}


def _check_numbers(train_tokens, validation_tokens, validation, workers):
  for field, got, least in (
    ("train tokens", train_tokens, 2),
    ("validation tokens", validation_tokens, 0),
    ("workers", workers, 1),
  ):
    check(
      got is None or got >= least, field, got, f"at least {least}", "give more"
    )
  check(
    validation is None or validation_tokens is None,
    "validation tokens",
    f"{validation_tokens} beside a corpus to share them with",
    "one of the two",
    "leave one out",
  )


def _shared(folder, encoder, seed):
  """The manifest of a corpus whose validation file will be shared."""
  manifest = read_manifest(folder)
  for field, got, expected in (
    ("tokenizer", encoder.tokenizer.digest, manifest.tokenizer["digest"]),
    ("separator", encoder.separator, manifest.separator),
    ("seed", seed, manifest.seed),
    ("share", SHARE, manifest.share),
  ):
    check(
      got == expected,
      f"corpus {folder}, whose validation is to be shared: {field}",
      got,
      f"its own, {expected}",
      "use equal ones, so that no document is in both",
    )
  check_files(pathlib.Path(folder), manifest)
  return manifest


def _check_amounts(partial, source, train_tokens, validation_tokens, shared):
  """Fails if the whole source was too short; nothing is left then."""
  got = {
    "train": partial.progress.train_tokens,
    "validation": partial.progress.validation_tokens,
  }
  least = _least(train_tokens, validation_tokens, shared)
  for split, tokens in got.items():
    if tokens < least[split]:
      partial.discard()
      fail(
        f"{split} tokens of {source.name}",
        f"{tokens:,} in {partial.progress.documents:,} documents",
        f"at least {least[split]:,}",
        f"ask for fewer, or give more (one in {SHARE} is for validation)",
      )


def _manifest(partial, source, encoder, seed, shared):
  """The record of a finished corpus."""
  done = partial.progress
  tokenizer = encoder.tokenizer
  packages = ("headjax", "numpy", *encoder.packages, *source.packages)
  return Manifest(
    name=partial.final.name,
    source={"name": source.name, "identity": source.identity},
    licences=list(source.licences),
    tokenizer={
      "name": tokenizer.name,
      "digest": tokenizer.digest,
      "bos": tokenizer.bos,
    },
    d_vocab=tokenizer.d_vocab,
    separator=encoder.separator,
    seed=seed,
    share=SHARE,
    documents={
      "train": done.train_documents,
      "validation": None if shared else done.validation_documents,
    },
    train=list(done.shards),
    validation={
      "file": VALIDATION,
      "tokens": done.validation_tokens,
      "sha256": sha256(partial.path / VALIDATION),
    }
    if shared is None
    else shared.validation,
    tokenizer_sha256=sha256(partial.path / TOKENIZER),
    packages={name: installed_version(name) for name in packages},
  )
