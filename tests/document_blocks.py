"""The fenced blocks of the documents, and the commands in them.

A block may be marked by comments right before its fence:

  <!-- ci: long, WHY -->     is not run: it takes long, or is run elsewhere
  <!-- ci: device, WHY -->   is not run: it needs devices, a network, a cloud
  <!-- ci: foreign, WHY -->  is not run: it is code of another library
  <!-- ci: with SCRIPT ARGUMENTS -->  is run with these arguments added to the
                             commands of that script
  <!-- ci: NAME -->          main, test and train, by which the README's
                             commands are found; main and test are not run

Whatever is not run is still read by bash or Python, and the arguments of its
commands are parsed by their scripts.
"""

import dataclasses
import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [
  ROOT / "README.md",
  *(p for p in sorted((ROOT / "docs").rglob("*.md")) if p.parent.name != "api"),
]
NOT_RUN = ("long", "device", "foreign", "main", "test")
KNOWN = (*NOT_RUN, "with", "train")
_FENCE = re.compile(
  r"((?:^<!-- ci: .*? -->\n)*)^```(\w*)\n(.*?)^```$", re.M | re.S
)
# A script of ours with its arguments, also inside the quotes of an ssh.
_COMMAND = re.compile(
  r"python3? (experiments/\S+\.py|-m headjax\.train)([^\n>&;|\"#]*)"
)


@dataclasses.dataclass(frozen=True)
class Block:
  """A fenced block.

  Attributes:
    page: the file.
    language: after the fence, "" if none.
    text: of the block.
    markers: what the comments before it say, after "ci: ".
  """

  page: pathlib.Path
  language: str
  text: str
  markers: tuple[str, ...]

  @property
  def label(self) -> str:
    """For the name of a test."""
    line = self.page.read_text().split(self.text)[0].count("\n") + 1
    return f"{self.page.name}:{line}"

  @property
  def words(self) -> list[str]:
    """The first word of each marker."""
    return [re.split(r"[ ,]", marker)[0] for marker in self.markers]

  @property
  def runs(self) -> bool:
    """Whether a test runs it."""
    return not set(self.words) & set(NOT_RUN)

  @property
  def commands(self) -> list[tuple[str, list[str]]]:
    """(script, arguments) of every command of ours."""
    text = self.text.replace("\\\n", " ")
    return [
      (script.split()[-1], shlex.split(re.sub(r"\$\w+", "0", arguments)))
      for script, arguments in _COMMAND.findall(text)
    ]

  @property
  def shortened(self) -> str:
    """The text with the arguments that the markers add."""
    added = {}
    for marker in self.markers:
      word, *rest = marker.split(maxsplit=2)
      if word == "with":
        added[rest[0]] = rest[1]

    def extend(match):
      name = pathlib.Path(match[1].split()[-1]).stem
      more = added.get(match[1].split()[-1]) or added.get(name)
      return f"{match[0].rstrip()} {more} " if more else match[0]

    return _COMMAND.sub(extend, self.text.replace("\\\n", " "))


def blocks(page: pathlib.Path) -> list[Block]:
  """The fenced blocks of a page, in its order."""
  return [
    Block(page, language, text, tuple(re.findall("ci: (.*?) -->", markers)))
    for markers, language, text in _FENCE.findall(page.read_text())
  ]


ALL = [block for page in PAGES for block in blocks(page)]
