"""Does every public name say what it takes, gives and refuses?

Public is what `__all__` of a package lists, and what docs/api shows.
"""

import ast
import importlib
import inspect
import pathlib
import re
import tomllib

import docstrings
import pytest

ROOT = docstrings.ROOT
PACKAGES = ("headjax", "headjax.data", "headjax.geometry", "headjax.statistics")
SHOWN = [
  target
  for page in sorted((ROOT / "docs" / "api").glob("*.md"))
  for target in re.findall(r"^::: (\S+)$", page.read_text(), re.M)
]


def source_of(target):
  """Name -> definition of what a line of a reference page shows."""
  path = ROOT / (target.replace(".", "/") + ".py")
  if path.exists():
    return docstrings.public(path)
  package, name = target.rsplit(".", 1)
  value = getattr(importlib.import_module(package), name)
  if not inspect.isclass(value) and not inspect.isfunction(value):
    return {}  # a constant; its comment says what it is
  defined = docstrings.public(pathlib.Path(inspect.getsourcefile(value)))
  return {name: defined[value.__name__]}


@pytest.mark.parametrize("target", SHOWN)
def test_a_docstring_says_what_it_takes_gives_and_refuses(target):
  found = {
    name: docstrings.complaints(node)
    for name, node in source_of(target).items()
  }
  assert {name: what for name, what in found.items() if what} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_package_is_in_the_reference(package):
  others = {t.rsplit(".", 1)[-1] for t in SHOWN}
  names = importlib.import_module(package).__all__
  assert set(names) <= others


def test_every_example_of_a_docstring_is_run():
  settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
  paths = settings["tool"]["pytest"]["ini_options"]["testpaths"]
  run = [ROOT / path for path in paths]
  for path in (ROOT / "headjax").rglob("*.py"):
    if ">>> " in path.read_text():
      assert any(path.is_relative_to(place) for place in run), path


def test_examples_have_the_heading_that_makes_code_of_them():
  # Under "Example:" the reference shows the prompts as nested quotations.
  for path in (ROOT / "headjax").rglob("*.py"):
    assert not re.search(r"^ +Example:$", path.read_text(), re.M), path


@pytest.mark.parametrize(
  ("source", "complaint"),
  [
    ("def f(a): pass", "no docstring"),
    ('def f(a, b):\n  "Adds."', "Args: a"),
    ('def f(a: np.ndarray):\n  "Adds."', "no shape of a"),
    ('def f() -> np.ndarray:\n  "Gives numbers."', "no shape of what"),
    ('def f(a):\n  "Adds."\n  check(a)', "Raises"),
    ('def f(a):\n  "Adds."\n  raise ValueError', "Raises"),
    ('class A:\n  "One."\n  def f(self, a, b):\n    "Adds."', "f: Args: a"),
    ('class A:\n  """One.\n\n  Two.\n  """\n  a: int', "Attributes: a"),
  ],
)
def test_a_planted_omission_is_found(source, complaint):
  [node] = ast.parse(source).body
  assert any(complaint in what for what in docstrings.complaints(node))


def test_a_complete_docstring_passes():
  source = '''
def f(a: np.ndarray, b: int = 2) -> np.ndarray:
  """Adds.

  Args:
    a: `[pos]`, what to add.
    b: how often.

  Returns:
    `[pos]`, the sums.

  Raises:
    ValueError: never.
  """
  check(b)
'''
  [node] = ast.parse(source).body
  assert docstrings.complaints(node) == []
