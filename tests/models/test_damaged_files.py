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


def check_all(seed, count, target, spec, raw, limit):
  """Loads `count` damaged versions of a file.

  Args:
    seed: of the damage.
    count: how many versions.
    target: the file to overwrite.
    spec: what to load.
    raw: the undamaged bytes.
    limit: how many of them are header.
  """
  rng = np.random.default_rng(seed)
  target.write_bytes(raw)
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
  assert max(peaks) < 4 * len(raw) + 2**21, max(peaks)


@pytest.mark.parametrize("name", ["gpt2_untied", "llama_kv1"])
def test_safetensors_headers(tmp_path, name):
  folder = shutil.copytree(FIXTURES / name, tmp_path / name)
  path = folder / "model.safetensors"
  raw = path.read_bytes()
  limit = 8 + int.from_bytes(raw[:8], "little")
  check_all(0, 250, path, folder, raw, limit)


def test_safetensors_index(tmp_path):
  folder = shutil.copytree(FIXTURES / "llama_kv2", tmp_path / "sharded")
  path = folder / "model.safetensors.index.json"
  raw = path.read_bytes()
  check_all(1, 150, path, folder, raw, len(raw))


def test_config_json(tmp_path):
  folder = shutil.copytree(FIXTURES / "llama_kv1", tmp_path / "config")
  path = folder / "config.json"
  raw = path.read_bytes()
  check_all(2, 250, path, folder, raw, len(raw))


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


@pytest.mark.parametrize("seed", [3, 4])
def test_gguf_headers(tmp_path, seed):
  path = tmp_path / "tiny.gguf"
  gguf_files.write(path, gguf_files.random_tensors(0))
  raw = path.read_bytes()
  limit = raw.index(b"output_norm.weight") + 60
  check_all(seed, 300, path, path, raw, limit)


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
