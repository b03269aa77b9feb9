"""The Hugging Face folders of the fixtures, and changes of a copy of one."""

import json
import pathlib

from safetensors import safe_open
from safetensors.numpy import save_file
from slow_params import slow_but

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
# Folders with what transformers computes. Those that differ from another only
# in their K/V heads have them in their names, and are slow tests.
_ALL = sorted(path.parent.name for path in FIXTURES.glob("*/expected.npz"))
_GROUPED = ("gemma2", "mistral", "olmo", "olmo2", "olmoe", "qwen2")
COMPUTED = slow_but(
  [n for n in _ALL if "_kv" not in n or n.split("_")[0] not in _GROUPED], _ALL
)
# The same, of which one of each kind of block is quick.
FEW = slow_but(["gpt2_tied", "llama_kv2", "neox", "gemma2", "olmoe"], _ALL)
ABSENT = object()  # a field of config.json that is to be removed


def change_config(folder, **changes):
  path = folder / "config.json"
  content = json.loads(path.read_text()) | changes
  content = {k: v for k, v in content.items() if v is not ABSENT}
  path.write_text(json.dumps(content))
  return folder


def change_tensors(folder, change):
  """Rewrites the weights after `change(tensors)` has edited the dict."""
  path = folder / "model.safetensors"
  with safe_open(path, framework="np") as file:
    tensors = {name: file.get_tensor(name) for name in file.keys()}
  change(tensors)
  save_file(tensors, path)
  return folder
