import ast
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def block(before: str) -> str:
  """The fenced block that follows a line of the README."""
  [found] = re.findall(rf"{re.escape(before)}\n(.*?)\n```", README, re.DOTALL)
  return found


@pytest.mark.parametrize("name", ["main", "test"])
def test_each_command_is_one_line_that_a_shell_can_read(name):
  command = block(f"<!-- ci: {name} -->\n```bash")
  assert "\n" not in command
  assert command.startswith("python3 -m venv .venv && ")
  subprocess.run([shutil.which("bash"), "-nc", command], check=True)


def test_every_script_and_folder_that_the_readme_names_exists():
  scripts = set(re.findall(r"experiments/[\w/]+\.py", README))
  tree = block("## The tree\n\n```")
  folders = re.findall(r"^  (\w+(?:/|\.py)) ", tree, re.MULTILINE)
  assert "models/" in folders
  for path in [*scripts, *(f"headjax/{folder}" for folder in folders)]:
    assert (ROOT / path).exists(), path


def test_the_ci_runs_the_marked_command():
  assert "/<!-- ci: test -->/" in (ROOT / ".ci" / "run").read_text()
  assert block("<!-- ci: test -->\n```bash").endswith("-m pytest")


@pytest.mark.slow
def test_the_python_example_runs_as_printed():
  source = block("```python")
  names = {}
  exec(compile(source, "README.md", "exec"), names)
  assert names["patched"].effect.dims == ("example", "layer", "head")
  for statement in ast.parse(source).body[-2:]:
    summary = ast.unparse(statement)
    assert "=" in repr(eval(summary, names)), summary
