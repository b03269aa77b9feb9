"""What does an encyclopedia article say, without its markup?

A rough reading of MediaWiki's text: templates, tables, references, images and
lists of links go, prose and headings stay. It is not a parser: unbalanced
markup leaves traces.
"""

import html
import re

# Sections that list sources instead of telling something.
_LISTS = {
  "bibliography",
  "citations",
  "discography",
  "external links",
  "filmography",
  "footnotes",
  "further reading",
  "gallery",
  "notes",
  "notes and references",
  "references",
  "see also",
  "sources",
  "works cited",
}
_DROPPED = "ref|math|gallery|timeline|source|syntaxhighlight|code|pre|imagemap"
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_EMPTY_TAG = re.compile(rf"<(?:{_DROPPED})\b[^<>]*/>", re.I)
_DROPPED_TAG = re.compile(rf"<({_DROPPED})\b[^<>]*>.*?</\1\s*>", re.I | re.S)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_MEASURE = re.compile(
  r"\{\{\s*(?:convert|cvt)\s*\|([^|{}]+)\|([^|{}]+)[^{}]*\}\}", re.I
)
_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")
_TABLE = re.compile(r"\{\|(?:(?!\{\||\|\}).)*\|\}", re.S)
_FILE = re.compile(
  r"\[\[\s*(?:file|image|category|[a-z-]{2,12}):(?:[^\[\]]|\[\[[^\[\]]*\]\])*"
  r"\]\]",
  re.I,
)
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_ADDRESS = re.compile(r"\[(?:https?:)?//[^\s\]]*\s*([^\]]*)\]")
_HEADING = re.compile(r"^(={2,6})\s*(.+?)\s*\1\s*$", re.M)
_MARKS = re.compile(r"'{2,5}|__[A-Z]+__")
_BULLET = re.compile(r"^[*#:;]+\s*", re.M)
# A parenthesis whose first words were a template.
_HOLLOW = re.compile(r"\([\s,;:]*\)")
_COMMA_FIRST = re.compile(r"\(\s*[,;:][\s,;:]*")
# What a table or template without its other half leaves on a line.
_REST = re.compile(r"^\s*(?:[|!{}].*|[^\w]*)$", re.M)


def plain(text: str) -> str:
  """The prose of an article.

  Args:
    text: wikitext, with its XML entities already read.

  Returns:
    Paragraphs and headings, separated by blank lines; "" for an article that
    is nothing else than markup.
  """
  text = html.unescape(_COMMENT.sub("", text))
  for pattern in (_EMPTY_TAG, _DROPPED_TAG):
    text = pattern.sub("", text)
  text = _MEASURE.sub(r"\1 \2", text)
  # Both nest: the innermost ones go first.
  for pattern in (_TEMPLATE, _TABLE):
    text = _until_stable(pattern, "", text)
  text = _without_lists(text)
  text = _FILE.sub("", text)
  text = _until_stable(_LINK, r"\1", text)
  for pattern, kept in (
    (_ADDRESS, r"\1"),
    (_TAG, ""),
    (_MARKS, ""),
    (_HEADING, r"\n\2\n"),
    (_BULLET, ""),
    (_HOLLOW, ""),
    (_COMMA_FIRST, "("),
    (_REST, ""),
  ):
    text = pattern.sub(kept, text)
  text = html.unescape(text).replace("\xa0", " ")
  text = re.sub(r"[ \t]+", " ", text)
  text = re.sub(r" ?\n ?", "\n", re.sub(r" ([,.;:)])", r"\1", text))
  return re.sub(r"\n{2,}", "\n\n", text).strip()


def _until_stable(pattern, kept, text):
  """Replaces until nothing matches any more."""
  found = 1
  while found:
    text, found = pattern.subn(kept, text)
  return text


def _without_lists(text):
  """The article without the sections that only list things."""
  kept, depth = [], None
  pieces = _HEADING.split(text)
  kept.append(pieces[0])
  for marks, title, body in zip(
    pieces[1::3], pieces[2::3], pieces[3::3], strict=True
  ):
    level = len(marks)
    if depth is not None and level > depth:
      continue
    depth = level if title.strip("' ").lower() in _LISTS else None
    if depth is None:
      kept.append(f"{marks} {title} {marks}{body}")
  return "".join(kept)
