"""How do documents become ids quickly? By the fastest encoder that agrees.

Tiktoken encodes GPT-2's vocabulary about five times as fast as the tokenizers
package, which takes all others; on GPT-2's both give the same ids.
"""

import collections
import concurrent.futures
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import tokenizers as backends

from headjax.checks import check, fail
from headjax.data.manifest import dtype_of
from headjax.models import tokenizers
from headjax.models.tokenizers import Tokenizer

SEPARATOR = "<|endoftext|>"
TIKTOKEN_INSTALL = "pip install tiktoken"


@dataclasses.dataclass(frozen=True, eq=False)
class Encoder:
  """Documents to ids, each with the separator at its end.

  A separator's text inside a document is text like any other.

  Attributes:
    tokenizer: the vocabulary.
    separator: the id that ends a document.
    encode: texts -> their ids without separators, and how many each has.
    packages: distributions that do the work.
  """

  tokenizer: Tokenizer
  separator: int
  encode: Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray]]
  packages: tuple[str, ...]

  def joined(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Documents, one after the other.

    Args:
      texts: the documents, in order.

    Returns:
      `[token]` ids as they stand in a file, and `[document]` int64: at which
      of them each document starts.
    """
    if not texts:
      return np.empty(0, self.dtype), np.empty(0, np.int64)
    ids, lengths = self.encode(texts)
    ends = np.cumsum(lengths)
    joined = np.insert(ids.astype(self.dtype), ends, self.separator)
    return joined, ends - lengths + np.arange(len(texts))

  @property
  def dtype(self) -> str:
    """NumPy's name of the integers in a file."""
    return dtype_of(self.tokenizer.d_vocab)


def open_encoder(name: str, separator: str = SEPARATOR) -> Encoder:
  """The encoder of a vocabulary.

  Args:
    name: `gpt2`, or the path of a `tokenizer.json`.
    separator: the token that ends a document.

  Raises:
    ValueError: no such vocabulary, or no such token in it.
  """
  is_gpt2 = name == "gpt2"
  tokenizer = tokenizers.gpt2() if is_gpt2 else tokenizers.from_file(name)
  end = tokenizer.backend.token_to_id(separator)
  check(
    end is not None,
    f"tokenizer {name}",
    f"no token {separator!r}",
    "a token that ends documents",
    "name another with --separator",
  )
  if is_gpt2:
    return Encoder(tokenizer, end, _tiktoken(tokenizer), ("tiktoken",))
  return Encoder(tokenizer, end, _plain(tokenizer), ("tokenizers",))


def in_order(work: Callable, items: Iterable, *, workers: int) -> Iterator:
  """Results of `work` in the order of its items, computed ahead by threads.

  Threads, because both encoders let go of Python's lock; at most two items a
  worker are ahead, so memory is bounded.

  Args:
    work: from one item to one result.
    items: the work, taken as it is needed.
    workers: threads.
  """
  with concurrent.futures.ThreadPoolExecutor(workers) as pool:
    ahead = collections.deque()
    try:
      for item in items:
        ahead.append(pool.submit(work, item))
        if len(ahead) > 2 * workers:
          yield ahead.popleft().result()
      while ahead:
        yield ahead.popleft().result()
    finally:
      pool.shutdown(cancel_futures=True)


def _tiktoken(tokenizer):
  """GPT-2's encoder by tiktoken, from the tokenizer's own vocabulary."""
  try:
    import tiktoken
    from tiktoken_ext.openai_public import r50k_pat_str
  except ImportError:
    fail("tokenizer gpt2", "no installed tiktoken", "it", TIKTOKEN_INSTALL)
  bytes_of = _bytes_of_characters()
  vocabulary = tokenizer.backend.get_vocab(with_added_tokens=False)
  special = {SEPARATOR: vocabulary.pop(SEPARATOR)}
  encoding = tiktoken.Encoding(
    "gpt2",
    pat_str=r50k_pat_str,
    # Ids of GPT-2 count its merges, so they are the order of merging.
    mergeable_ranks={
      bytes(bytes_of[character] for character in token): rank
      for token, rank in vocabulary.items()
    },
    special_tokens=special,
  )
  return functools.partial(_encode_runs, encoding)


def _encode_runs(encoding, texts):
  """Encodes as many documents at a time as possible.

  Documents joined by the special token are encoded like single ones, but in
  one call, so that threads seldom wait for Python's lock. One that has the
  token's text in it goes alone, with no special token allowed or forbidden.
  """
  pieces, lengths = [], []
  for alone, run in itertools.groupby(texts, lambda text: SEPARATOR in text):
    if alone:
      found = [encoding.encode_to_numpy(t, disallowed_special=()) for t in run]
      pieces += found
      lengths += map(len, found)
    else:
      text = SEPARATOR.join(run)
      ids = encoding.encode_to_numpy(text, allowed_special={SEPARATOR})
      is_end = ids == encoding.eot_token
      pieces.append(ids[~is_end])
      ends = [-1, *np.flatnonzero(is_end), len(ids)]
      lengths += (np.diff(ends) - 1).tolist()
  return np.concatenate(pieces), np.array(lengths)


def _plain(tokenizer):
  """Any encoder by the tokenizers package, its special tokens taken as text."""
  backend = backends.Tokenizer.from_str(tokenizer.backend.to_str())
  backend.encode_special_tokens = True

  def encode(texts):
    done = backend.encode_batch_fast(list(texts), add_special_tokens=False)
    pieces = [np.array(encoding.ids, np.int64) for encoding in done]
    return np.concatenate(pieces), np.array([len(ids) for ids in pieces])

  return encode


def _bytes_of_characters():
  """The byte for which each character of a byte-level vocabulary stands.

  Bytes that print stand for themselves, the others for characters from 256 on.
  """
  printing = [*range(33, 127), *range(161, 173), *range(174, 256)]
  others = [byte for byte in range(256) if byte not in set(printing)]
  return {chr(byte): byte for byte in printing} | {
    chr(256 + i): byte for i, byte in enumerate(others)
  }
