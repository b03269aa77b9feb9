"""A byte-level vocabulary of 261 ids, and documents in it."""

import pathlib

import numpy as np
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from headjax.data import corpora
from headjax.data.documents import Source, digest
from headjax.data.encoding import open_encoder

SEPARATOR = "<|endoftext|>"
MERGES = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("o", "r")]
WORDS = "the old door or the other shore, é and 汉 \u200b or\tnone\n".split(" ")


def tokenizer() -> tokenizers.Tokenizer:
  """GPT-2's kind of tokenizer with four merges."""
  characters = sorted(pre_tokenizers.ByteLevel.alphabet())
  tokens = characters + ["".join(pair) for pair in MERGES]
  vocabulary = {token: i for i, token in enumerate(tokens)}
  backend = tokenizers.Tokenizer(models.BPE(vocabulary, MERGES))
  backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
  backend.decoder = decoders.ByteLevel()
  backend.add_special_tokens([SEPARATOR])
  return backend


def tokenizer_file(folder: pathlib.Path) -> pathlib.Path:
  """Writes its `tokenizer.json`."""
  folder.mkdir(parents=True, exist_ok=True)
  tokenizer().save(str(folder / "tokenizer.json"))
  return folder / "tokenizer.json"


def documents(n: int, seed: int = 0) -> list[str]:
  """Random texts of up to 40 words; some are blank, some hold a separator."""
  rng = np.random.default_rng(seed)
  texts = []
  for i in range(n):
    words = rng.choice(WORDS, rng.integers(1, 40))
    texts.append(f"{i} " + " ".join(words))
  texts[3 % n] = " \n"
  texts[7 % n] += SEPARATOR + " and more"
  return texts


def encoded(texts: list[str]) -> list[list[int]]:
  """The ids of each text by the slow, plain way, its separator added."""
  backend = tokenizer()
  end = backend.token_to_id(SEPARATOR)
  rows = []
  for text in texts:
    pieces = text.split(SEPARATOR)
    ids = backend.encode(pieces[0], add_special_tokens=False).ids
    for piece in pieces[1:]:
      # Taken apart by hand, so that the separator's own text is no token.
      for part in ("<|", "endoftext", "|>"):
        ids += backend.encode(part, add_special_tokens=False).ids
      ids += backend.encode(piece, add_special_tokens=False).ids
    rows.append([*ids, end])
  return rows


def source(texts: list[str]) -> Source:
  """The texts as a source."""
  return Source(
    name="tiny",
    licences=("made up",),
    identity=digest(texts),
    read=lambda start: iter(texts[start:]),
  )


def make(folder: pathlib.Path, texts: list[str], **options):
  """Prepares a corpus; returns its manifest."""
  path = tokenizer_file(folder.parent / "vocabulary")
  encoder = open_encoder(str(path), options.pop("separator", SEPARATOR))
  sizes = {"shard_tokens": 700, "batch_characters": 300}
  return corpora.prepare(source(texts), encoder, folder, **sizes | options)
