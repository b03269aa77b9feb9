"""Do damaged files ever end in anything but one line or a clean load?

Bytes of the headers are changed at random (seeded). Whatever the change, the
memory that the reader asks for is bounded by the size of the file.
"""

import json
import shutil
import tracemalloc

import gguf_files
import numpy as np
import pytest
from fixture_folders import FIXTURES

from headjax.models.load import load_model

EXTREME = [0, 1, 2**16, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1]


def damage(rng, raw, limit):
  """Changes the first `limit` bytes, or cuts the file."""
  raw = bytearray(raw)
  kind = rng.integers(4)
  if kind == 0:
    del raw[int(rng.integers(len(raw))) :]
  elif kind == 1:
    at = int(rng.integers(limit - 8))
    raw[at : at + 8] = EXTREME[rng.integers(len(EXTREME))].to_bytes(8, "little")
  else:
    for at in rng.integers(limit, size=int(rng.integers(1, 4))):
      raw[at] = int(rng.integers(256)) if kind == 2 else raw[at] ^ 1
  return bytes(raw)


def attempt(spec):
  """Whether a load ends well; fails on anything but a one-line refusal."""
  try:
    load_model(spec)
  except ValueError as error:
    assert "\n" not in str(error)
    assert type(error) is ValueError
    return False
  return True


def check_all(seed, count, target, spec, limit):
  """Loads `count` damaged versions of a file.

  Args:
    seed: of the damage.
    count: how many versions.
    target: the file to overwrite.
    spec: what to load.
    limit: how many of its bytes are header.
  """
  rng = np.random.default_rng(seed)
  raw = target.read_bytes()
  assert attempt(spec)  # compiles what a load needs, and is no part of the peak
  outcomes, peaks = [], []
  tracemalloc.start()
  try:
    for _ in range(count):
      target.write_bytes(damage(rng, raw, limit))
      tracemalloc.reset_peak()
      before = tracemalloc.get_traced_memory()[0]
      outcomes.append(attempt(spec))
      peaks.append(tracemalloc.get_traced_memory()[1] - before)
  finally:
    tracemalloc.stop()
  assert not all(outcomes)
  # A config that still makes sense is traced anew, which takes up to 2 MiB.
  assert max(peaks) < 4 * len(raw) + 2**22, max(peaks)


def safetensors_header(tmp_path, name):
  folder = shutil.copytree(FIXTURES / name, tmp_path / name)
  path = folder / "model.safetensors"
  return path, folder, 8 + int.from_bytes(path.read_bytes()[:8], "little")


def whole_file(tmp_path, name, file):
  folder = shutil.copytree(FIXTURES / name, tmp_path / name)
  return folder / file, folder, (folder / file).stat().st_size


def gguf_header(tmp_path):
  path = tmp_path / "tiny.gguf"
  gguf_files.write(path, gguf_files.random_tensors(0))
  return path, path, path.read_bytes().index(b"output_norm.weight") + 60


# Name -> what makes the file to damage, what is loaded and where the damage
# ends; how many versions in the quick test; and how many in the slow one,
# 20,000 in all.
FILES = {
  "gpt2": (lambda path: safetensors_header(path, "gpt2_untied"), 200, 4000),
  "llama": (lambda path: safetensors_header(path, "llama_kv1"), 200, 4000),
  "index": (
    lambda path: whole_file(path, "llama_kv2", "model.safetensors.index.json"),
    100,
    1000,
  ),
  "config": (
    lambda path: whole_file(path, "llama_kv1", "config.json"),
    200,
    1000,
  ),
  "gguf": (gguf_header, 300, 10000),
}


@pytest.mark.parametrize("name", FILES)
def test_headers(tmp_path, name):
  make, count, _ = FILES[name]
  check_all(0, count, *make(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_twenty_thousand_files(tmp_path, name):
  make, _, count = FILES[name]
  check_all(1, count, *make(tmp_path))


@pytest.mark.parametrize(
  "name",
  ["gpt2_tied"]
  + [
    pytest.param(name, marks=pytest.mark.slow)
    for name in ("neox", "llama3", "qwen2", "gemma2", "olmo", "olmoe")
  ],
)
def test_config_values(tmp_path, name):
  folder = shutil.copytree(FIXTURES / name, tmp_path / "values")
  path = folder / "config.json"
  content = json.loads(path.read_text())
  strange = [0, -1, 2**70, 1e300, float("nan"), None, True, "x", [], {}]
  # Also what a file may have and this one has not.
  for field in {*content, "rope_scaling", "layer_types", "head_dim"}:
    for value in strange:
      path.write_text(json.dumps(content | {field: value}))
      attempt(folder)


def test_gguf_numbers(tmp_path):
  """Damaged scales are infinite or no numbers, which is refused."""
  path = tmp_path / "tiny.gguf"
  gguf_files.write(path, gguf_files.random_tensors(0), "Q4_1")
  raw = path.read_bytes()
  rng = np.random.default_rng(5)
  outcomes = []
  for _ in range(60):
    changed = np.frombuffer(raw, np.uint8).copy()
    at = rng.integers(len(raw) // 2, len(raw), 40)
    changed[at] = rng.integers(256, size=40)
    path.write_bytes(changed.tobytes())
    outcomes.append(attempt(path))
  assert any(outcomes) and not all(outcomes)


@pytest.mark.parametrize("claim", [{"hidden_size": 10**7}, {"head_dim": 10**7}])
def test_claimed_sizes_take_no_memory(tmp_path, claim):
  folder = shutil.copytree(FIXTURES / "llama_kv1", tmp_path / "claim")
  path = folder / "config.json"
  path.write_text(json.dumps(json.loads(path.read_text()) | claim))
  tracemalloc.start()
  try:
    assert not attempt(folder)
    assert tracemalloc.get_traced_memory()[1] < 2**22
  finally:
    tracemalloc.stop()
