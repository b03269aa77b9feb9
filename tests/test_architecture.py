"""Who may import whom, read from the sources of the whole repository."""

import ast
import itertools
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
# A module may import its own package and whatever stands further up.
ORDER = [
  {"headjax.checks", "headjax.files", "headjax.outline"},
  {"headjax.array_files"},
  {"headjax.geometry", "headjax.statistics"},
  {"headjax.models"},
  {"headjax.data"},
  {"headjax.results"},
  {"headjax.interventions", "headjax.training"},
  {"headjax.studies"},
  # The public names: without reports, so that they need no matplotlib.
  {"headjax.reports", "headjax"},
  {"headjax.command_line"},
  {"headjax.train"},
  {"configs"},
  {"experiments"},
]
FREE = {"headjax.statistics": {"numpy", "scipy"}}
ONLY_IN = {"matplotlib": "headjax.reports", "plotly": "headjax.reports"}
NO_NAMES = {"utils", "common", "helpers", "misc"}


def read_repository() -> dict[str, str]:
  """Module name -> source of every Python file outside the tests."""
  files = [
    file
    for folder in ("headjax", "configs", "experiments")
    for file in (ROOT / folder).rglob("*.py")
  ]
  return {module_name(file): file.read_text() for file in files}


def module_name(file: pathlib.Path) -> str:
  parts = file.relative_to(ROOT).with_suffix("").parts
  return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str, modules) -> set[str]:
  """What a source imports anywhere; relative imports keep their dots."""
  found = set()
  for node in ast.walk(ast.parse(source)):
    if isinstance(node, ast.Import):
      found |= {alias.name for alias in node.names}
    elif isinstance(node, ast.ImportFrom):
      origin = "." * node.level + (node.module or "")
      for alias in node.names:
        inner = f"{origin}.{alias.name}"
        found.add(inner if inner in modules else origin)
  return found


def package(module: str) -> str:
  """The row entry of `ORDER` to which a module belongs."""
  depth = 2 if module.startswith("headjax.") else 1
  return ".".join(module.split(".")[:depth])


def rank(module: str) -> int | None:
  rows = [i for i, row in enumerate(ORDER) if package(module) in row]
  return rows[0] if rows else None


def is_ours(module: str) -> bool:
  return module.split(".")[0] in {"headjax", "configs", "experiments"}


def may_import(source: str, target: str) -> bool:
  if target.startswith("."):
    return False
  if not is_ours(target):
    top = target.split(".")[0]
    free = FREE.get(package(source))
    foreign = top not in sys.stdlib_module_names
    return package(source) == ONLY_IN.get(top, package(source)) and not (
      free and foreign and top not in free
    )
  if package(source) == "configs":
    return package(target) == "configs"
  if package(source) == package(target) == "headjax.studies":
    return source.split(".")[:3] == target.split(".")[:3]
  if package(source) == package(target):
    return True
  ranks = rank(source), rank(target)
  return None not in ranks and ranks[1] < ranks[0]


def violations(modules: dict[str, str]) -> list[str]:
  found = []
  for module, source in modules.items():
    if module.split(".")[-1] in NO_NAMES:
      found.append(f"{module}: the name says nothing")
    found += [
      f"{module} imports {target}"
      for target in sorted(imports(source, modules))
      if not may_import(module, target)
    ]
  return found


def circles(modules: dict[str, str]) -> list[str]:
  """Modules that import themselves through others."""
  edges = {m: imports(s, modules) & modules.keys() for m, s in modules.items()}
  reach = {module: set(targets) for module, targets in edges.items()}
  for middle, source in itertools.product(modules, modules):
    if middle in reach[source]:
      reach[source] |= reach[middle]
  return sorted(module for module in modules if module in reach[module])


def test_the_repository_keeps_the_order_of_imports():
  modules = read_repository()
  assert {"headjax.checks", "headjax.results"} <= modules.keys()
  assert violations(modules) == []


def test_no_module_imports_itself_through_others():
  assert circles(read_repository()) == []


@pytest.mark.parametrize(
  ("module", "source"),
  [
    ("headjax.checks", "from headjax.models.config import ModelConfig"),
    ("headjax.geometry.cores", "from headjax import statistics"),
    ("headjax.statistics.lanes", "import jax"),
    ("headjax.statistics.lanes", "def f():\n  from headjax.data import pairs"),
    ("headjax.models.load", "import headjax.data.pairs as p"),
    ("headjax.models.load", "from ..data import pairs"),
    ("headjax.models.load", "from headjax import patch_heads"),
    ("headjax.data.pairs", "from headjax import results"),
    ("headjax.results", "from headjax.interventions.sweep import x"),
    ("headjax.training.loop", "from headjax.interventions import edits"),
    ("headjax.interventions.sweep", "import headjax"),
    ("headjax.studies.cores.extract", "import headjax.studies.writers.paths"),
    ("headjax.studies.cores.extract", "from headjax.studies import writers"),
    ("headjax.interventions.acdc", "from headjax.command_line import run"),
    ("headjax.reports.html", "from headjax.command_line import run"),
    ("headjax", "from headjax.reports.figures import head_heatmap"),
    ("headjax.results", "import matplotlib.pyplot"),
    ("headjax.results", "from plotly.offline import get_plotlyjs"),
    ("experiments.head_patching", "from matplotlib.figure import Figure"),
    ("headjax.train", "import experiments.head_patching"),
    ("configs.base", "from headjax.models.config import ModelConfig"),
    ("headjax.models.load", "import configs.base"),
    ("headjax.models.load", "import headjax.new_package.thing"),
    ("headjax.models.utils", ""),
  ],
)
def test_a_planted_violation_is_found(module, source):
  others = {
    "headjax.statistics": "",
    "headjax.results": "",
    "headjax.studies.writers": "",
    "headjax.data.pairs": "",
  }
  assert len(violations(others | {module: source})) == 1


@pytest.mark.parametrize(
  ("module", "source"),
  [
    ("headjax.statistics.lanes", "import math, numpy, scipy.stats"),
    ("headjax.models.load", "from headjax.models import config"),
    ("headjax.studies.cores.extract", "import headjax.studies.cores.markov"),
    ("headjax.studies.cores.extract", "from headjax.interventions import acdc"),
    ("headjax.reports.figures", "from matplotlib.figure import Figure"),
    ("headjax", "from headjax.interventions.sweep import patch_heads"),
    ("headjax.train", "from headjax.command_line import run"),
    ("experiments.head_patching", "from configs import base"),
    ("experiments.head_patching", "import headjax, headjax.command_line"),
    ("configs.cores", "from configs import base"),
  ],
)
def test_an_import_further_up_is_allowed(module, source):
  assert violations({module: source}) == []


def test_a_planted_circle_is_found():
  modules = {
    "headjax.models.a": "from headjax.models import b",
    "headjax.models.b": "import headjax.models.c",
    "headjax.models.c": "def f():\n  from headjax.models.a import g",
    "headjax.models.d": "import headjax.models.a",
  }
  assert circles(modules) == [f"headjax.models.{name}" for name in "abc"]
