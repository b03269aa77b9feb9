"""Does every command and every example of the documents work?"""

import ast
import dataclasses
import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import document_blocks
import helpers
import jax
import pytest
from document_blocks import ALL, KNOWN, PAGES, ROOT

import headjax
from headjax import command_line, train
from headjax.data import toy_tokenizer
from headjax.training import from_config

COMMANDS = [
  pytest.param(script, arguments, id=f"{block.page.name}-{script}")
  for block in ALL
  if block.language == "bash"
  for text in dict.fromkeys((block.text, block.shortened))
  for script, arguments in dataclasses.replace(block, text=text).commands
]
PYTHON = [p for p in PAGES if "\n```python\n" in p.read_text()]


@pytest.mark.parametrize("block", ALL, ids=lambda block: block.label)
def test_a_block_can_be_read_and_its_markers_are_known(block):
  assert set(block.words) <= set(KNOWN)
  assert all("," in m for m in block.markers if m.split(",")[0] in KNOWN[:3])
  if block.language == "bash":
    subprocess.run([shutil.which("bash"), "-nc", block.text], check=True)
    assert (
      "--config=... " in block.text
      or block.commands
      or block.runs
      or (set(block.words) & {"main", "test", "long", "device"})
    )
  elif block.language == "python":
    ast.parse(block.text)
  else:
    assert block.language in ("text", "json", "")


def test_every_fence_of_a_page_is_seen():
  for page in PAGES:
    n = len(re.findall(r"^```", page.read_text(), re.M))
    assert n == 2 * len(document_blocks.blocks(page)), page


@pytest.mark.parametrize(("script", "arguments"), COMMANDS)
def test_a_script_takes_the_arguments_that_a_page_gives_it(script, arguments):
  if script == "headjax.train":
    known = "--config=configs/geometry.py:learned@tiny"
    flags = [known if a == "--config=..." else a for a in arguments]
    from_config.settings(train.parse(flags).config)
  else:
    name = script.removesuffix(".py").replace("/", ".")
    module = importlib.import_module(name)
    assert (ROOT / script).exists()
    plain = command_line.Parser("").parse_args  # a script without options
    parsed = getattr(module, "parse", plain)(arguments)
    if name.endswith("train_all"):
      assert module.planned(*parsed)


@pytest.fixture
def stand_in(monkeypatch):
  """A random model of SmolLM2's layers and heads, and toy words."""
  toy = toy_tokenizer.tokenizer()
  config = dataclasses.replace(
    helpers.LLAMA, n_layers=30, n_heads=9, n_kv_heads=3, windows=None,
    d_key=None, d_model=18, d_head=2, d_mlp=8, d_vocab=toy.d_vocab, n_ctx=64,
  )  # fmt: skip
  model, _ = helpers.random_model(config, dtype="float32")
  model = dataclasses.replace(model, tokenizer=toy, name="stand-in")
  monkeypatch.setattr(headjax, "load_model", lambda spec: model)
  # One device: on eight, every sweep would be compiled for all of them.
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  return model


def run_python(block, names):
  exec(compile(block.text, block.label, "exec"), names)


@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page.name)
def test_examples_run_on_a_small_model(page, stand_in, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  names = {}
  for block in document_blocks.blocks(page):
    if block.language == "bash" and block.runs and not block.commands:
      subprocess.run([shutil.which("bash"), "-ec", block.text], check=True)
    if block.language == "python" and block.runs:
      run_python(block, names)


def shell(block, folder):
  """Runs a bash block as a reader would, in a folder that looks like ours."""
  for name in ("configs", "experiments", "headjax"):
    if not (folder / name).exists():
      (folder / name).symlink_to(ROOT / name)
  for place in (folder / ".venv" / "bin", folder / "bin"):
    place.mkdir(parents=True, exist_ok=True)
    python = place / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
  variables = os.environ | {
    "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
    "PYTHONPATH": str(folder),
    "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
    "XLA_FLAGS": "",
  }
  command = [shutil.which("bash"), "-euo", "pipefail", "-c", block.shortened]
  subprocess.run(command, check=True, cwd=folder, env=variables)


@pytest.mark.slow
@pytest.mark.parametrize(
  "page",
  [p for p in PAGES if any(b.runs for b in document_blocks.blocks(p))],
  ids=lambda page: page.name,
)
def test_a_page_works_from_its_top_to_its_end(page, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  names = {}
  for block in document_blocks.blocks(page):
    if block.language == "bash" and block.runs:
      shell(block, pathlib.Path(tmp_path))
    if block.language == "python" and block.runs:
      run_python(block, names)
