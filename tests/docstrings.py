"""What a docstring of a public name has to say, read from the sources.

- A function with several parameters has `Args:`, which names each of them.
- One that returns something says what: `Returns:`, or it is a single sentence.
- One that checks its input says so: `Raises:`, or "fails", "refuses".
- An array, a parameter or a field, has its axes in brackets; so has what is
  returned. Where any shape will do the text says "shape".
- A class with fields has `Attributes:`, which names each of them.
- What is taken from a paper says "paper" or "Source:" (this no test can know).
"""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
_ARRAYS = {"jax.Array", "np.ndarray", "jax.Array | None", "np.ndarray | None"}
_CHECKS = re.compile(r"_?(check|fail)(_\w+)?")
_SHAPE = re.compile(r"\[|shape|scalar|axes|broadcast")


def complaints(node: ast.FunctionDef | ast.ClassDef) -> list[str]:
  """What the docstring of a definition lacks, in words."""
  text = ast.get_docstring(node)
  if not text:
    return ["no docstring"]
  if isinstance(node, ast.ClassDef):
    return _of_class(node, text)
  return _of_function(node, text)


def _of_class(node, text):
  fields = {
    item.target.id: ast.unparse(item.annotation)
    for item in node.body
    if isinstance(item, ast.AnnAssign) and not item.target.id.startswith("_")
  }
  names = [name for name in fields if not _names(text, name)]
  if names and not _one_sentence(text):
    return [f"Attributes: {name}" for name in names]
  found = []
  for name, kind in fields.items():
    if kind in _ARRAYS and _names(text, name):
      if not _SHAPE.search(_entry(text, name)):
        found.append(f"no shape of {name}")
  for item in node.body:
    if _is_public_method(item):
      found += [f"{item.name}: {what}" for what in complaints(item)]
  return found


def _is_public_method(item):
  # What a module of Linen sets up is said by its class.
  return isinstance(item, ast.FunctionDef) and not (
    item.name.startswith("_") or item.name == "setup"
  )


def _of_function(node, text):
  found, arguments = [], _arguments(node)
  if len(arguments) > 1:
    found += [f"Args: {a}" for a in arguments if not _names(text, a)]
  for name, kind in arguments.items():
    if kind in _ARRAYS and not _SHAPE.search(_entry(text, name) or text):
      found.append(f"no shape of {name}")
  returns = "None" if node.returns is None else ast.unparse(node.returns)
  if returns not in ("None", "NoReturn") and "Returns:" not in text:
    if len(text.split("\n\n")[0].split()) < 3:
      found.append("Returns")
  if returns in _ARRAYS and not _SHAPE.search(text):
    found.append("no shape of what is returned")
  says = re.search(r"Raises:|[Ff]ails|[Rr]efuse", text)
  if _checks(node) and not says:
    found.append("Raises")
  return found


def _arguments(node):
  """Name -> annotation of the parameters."""
  given = node.args
  every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
  return {
    a.arg: "" if a.annotation is None else ast.unparse(a.annotation)
    for a in every
    if a.arg not in ("self", "cls") and not a.arg.startswith("_")
  }


def _checks(node):
  """Whether the body itself refuses input."""
  for inner in ast.walk(node):
    if isinstance(inner, ast.Raise):
      return True
    if isinstance(inner, ast.Call):
      name = ast.unparse(inner.func).split(".")[-1]
      if _CHECKS.fullmatch(name):
        return True
  return False


def _names(text, name):
  return bool(_entry(text, name))


def _entry(text, name):
  """The line of a parameter or a field, with those that go on from it."""
  many = rf"^ *(?:\*{{0,2}}\w+, )*\*{{0,2}}{name}(?:, \w+)*: .*(?:\n {{4,}}.*)*"
  found = re.search(many, text, re.M)
  return found[0] if found else ""


def _one_sentence(text):
  return len(text.split("\n\n")) == 1


def public(path: pathlib.Path) -> dict[str, ast.AST]:
  """Name -> definition of what a module gives to others."""
  tree = ast.parse(path.read_text())
  return {
    node.name: node
    for node in tree.body
    if isinstance(node, ast.FunctionDef | ast.ClassDef)
    and not node.name.startswith("_")
  }
