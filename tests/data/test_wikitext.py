import pytest

from headjax.data.wikitext import plain


@pytest.mark.parametrize(
  ("marked", "expected"),
  [
    ("'''Bold''' and ''italic''", "Bold and italic"),
    ("a [[link]], a [[Page (x)|label]], [[a]]s", "a link, a label, as"),
    ("[http://x.org the site] or [https://x.org]", "the site or"),
    ("text<ref>source {{cite}}</ref> on<ref name=a/> and on", "text on and on"),
    ("text<ref name=a /> is <ref>b</ref> here", "text is here"),
    ("{{Infobox|a={{b|c}}\n|d=e}}\nIt is.", "It is."),
    ("{| class=x\n! a\n|-\n| b\n{|\n|c\n|}\n|}\nIt is.", "It is."),
    ("[[File:a.png|thumb|A [[cat]] sits]]It is.", "It is."),
    ("It is.\n[[Category:Cats]]\n[[de:Katze]]", "It is."),
    ("<!-- no\nno -->It is<br />so<sup>2</sup>", "It isso2"),
    ("<math>x^2</math> is&nbsp;x &amp; more", "is x & more"),
    ("* one\n** two\n: three", "one\ntwo\nthree"),
    ("a\n\n== Life ==\nb\n=== Work ===\nc", "a\n\nLife\n\nb\n\nWork\n\nc"),
    (
      "a\n== See also ==\n* [[b]]\n=== c ===\nd\n== Life ==\ne",
      "a\n\nLife\n\ne",
    ),
    ("a\n== References ==\n{{reflist}}", "a"),
    ("It weighs {{convert|60|kg|lb}}.", "It weighs 60 kg."),
    ("A ({{lang|de|B}}) is (; {{IPA|x}}, C) here", "A is (C) here"),
    ("__NOTOC__It is.", "It is."),
    ("a\n\n\n\n\nb", "a\n\nb"),
    ("{{stub}}", ""),
    ("", ""),
    ("2 < 3 and {open", "2 < 3 and {open"),
  ],
)
def test_markup_goes_and_prose_stays(marked, expected):
  assert plain(marked) == expected
