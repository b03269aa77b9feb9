"""Does each device read what it holds, and nothing else, and is it right?"""

import json
import math
import pathlib
import shutil
import struct
import subprocess
import sys

import gguf_files
import jax
import numpy as np
import pytest
from fixture_folders import FIXTURES
from jax.sharding import AxisType
from one_line import refusal
from safetensors.numpy import load_file, save_file

from headjax.models import huggingface, placement, shards
from headjax.models.load import load_model


def mesh(**sizes):
  axes = (AxisType.Auto,) * len(sizes)
  n = math.prod(sizes.values())
  return jax.make_mesh(
    tuple(sizes.values()), tuple(sizes), axes, devices=jax.devices()[:n]
  )


MESH = {"data": 2, "fsdp": 2, "tensor": 2}


@pytest.fixture
def folder(tmp_path):
  return shutil.copytree(FIXTURES / "llama_kv1", tmp_path / "llama_kv1")


def assert_split_alike(found, wanted, where):
  shardings = placement.of_params(where, wanted.config, wanted.params)
  trees = (found.params, wanted.params, shardings)
  leaves = [jax.tree.leaves(tree) for tree in trees]
  assert jax.tree.structure(trees[0]) == jax.tree.structure(trees[1])
  for a, b, sharding in zip(*leaves, strict=True):
    assert a.dtype == b.dtype and a.sharding == sharding
    np.testing.assert_array_equal(
      np.asarray(a).view(np.uint8), np.asarray(b).view(np.uint8)
    )
    for shard in a.addressable_shards:
      assert shard.data.shape == sharding.shard_shape(a.shape)


@pytest.mark.parametrize("name", ["gpt2_untied", "llama_kv1", "llama_kv2"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_parts_are_those_of_the_whole_model(name, dtype):
  where = mesh(**MESH)
  found = load_model(FIXTURES / name, dtype=dtype, mesh=where)
  wanted = load_model(FIXTURES / name, dtype=dtype)
  assert (found.config, found.digest) == (wanted.config, wanted.digest)
  assert_split_alike(found, wanted, where)


def test_other_files_are_split_after_reading(tmp_path):
  path, where = tmp_path / "tiny.gguf", mesh(**MESH)
  gguf_files.write(path, gguf_files.random_tensors(0))
  found, wanted = load_model(path, mesh=where), load_model(path)
  assert_split_alike(found, wanted, where)


def test_what_is_read_is_what_was_planned(folder, monkeypatch):
  where = mesh(fsdp=4, tensor=2)
  opened, sizes = huggingface.open_folder(folder), []
  read = shards._read

  def counting(views, pieces, extent, dtype, field):
    part = read(views, pieces, extent, dtype, field)
    sizes.append(part.nbytes)
    return part

  monkeypatch.setattr(shards, "_read", counting)
  found = load_model(folder, mesh=where).params
  planned = shards.planned_bytes(opened, where)
  held = dict.fromkeys(jax.devices(), 0)
  for leaf in jax.tree.leaves(found):
    for shard in leaf.addressable_shards:
      held[shard.device] += shard.data.nbytes  # stored in float32, too
  assert planned == held
  # Parts that several devices hold are read once.
  assert sum(sizes) == sum(leaf.nbytes for leaf in jax.tree.leaves(found))
  assert max(sizes) < max(leaf.nbytes for leaf in jax.tree.leaves(found))


LLAMA_8B = {
  "architectures": ["LlamaForCausalLM"],
  "hidden_size": 4096,
  "intermediate_size": 14336,
  "num_hidden_layers": 32,
  "num_attention_heads": 32,
  "num_key_value_heads": 8,
  "vocab_size": 128256,
  "max_position_embeddings": 8192,
  "rms_norm_eps": 1e-5,
  "rope_theta": 500000.0,
  "tie_word_embeddings": False,
}


def llama_shapes(config):
  """Tensor -> shape, as in the files of a Llama."""
  d, hidden = config["hidden_size"], config["intermediate_size"]
  width = d // config["num_attention_heads"] * config["num_key_value_heads"]
  vocab = (config["vocab_size"], d)
  shapes = {"model.embed_tokens.weight": vocab, "lm_head.weight": vocab}
  shapes["model.norm.weight"] = (d,)
  if config["tie_word_embeddings"]:
    del shapes["lm_head.weight"]
  for layer in range(config["num_hidden_layers"]):
    block = {
      "input_layernorm": (d,), "post_attention_layernorm": (d,),
      "self_attn.q_proj": (d, d), "self_attn.k_proj": (width, d),
      "self_attn.v_proj": (width, d), "self_attn.o_proj": (d, d),
      "mlp.up_proj": (hidden, d), "mlp.gate_proj": (hidden, d),
      "mlp.down_proj": (d, hidden),
    }  # fmt: skip
    shapes |= {
      f"model.layers.{layer}.{name}.weight": s for name, s in block.items()
    }
  return shapes


def write_sparse(folder, config, n_files=4):
  """The folder of a model whose weights are holes in the files."""
  folder.mkdir()
  (folder / "config.json").write_text(json.dumps(config))
  names, index = list(llama_shapes(config).items()), {}
  for i in range(n_files):
    file, header, end = f"model-{i}.safetensors", {}, 0
    for name, shape in names[i::n_files]:
      start, end = end, end + 2 * math.prod(shape)
      header[name] = {
        "dtype": "BF16", "shape": shape, "data_offsets": [start, end]
      }  # fmt: skip
      index[name] = file
    text = json.dumps(header).encode()
    with open(folder / file, "wb") as stream:
      stream.write(struct.pack("<Q", len(text)) + text)
      stream.truncate(8 + len(text) + end)
  (folder / "model.safetensors.index.json").write_text(
    json.dumps({"weight_map": index})
  )
  return folder


@pytest.mark.parametrize("sizes", [{"fsdp": 8, "tensor": 1},
                                   {"fsdp": 2, "tensor": 4}])  # fmt: skip
def test_eight_devices_read_an_eighth_each_of_an_8b_model(tmp_path, sizes):
  opened = huggingface.open_folder(write_sparse(tmp_path / "8b", LLAMA_8B))
  shapes = llama_shapes(LLAMA_8B).values()
  total = 2 * sum(math.prod(shape) for shape in shapes)
  assert total == 2 * 8_030_261_248
  norms = 2 * sum(math.prod(shape) for shape in shapes if len(shape) == 1)
  planned = shards.planned_bytes(opened, mesh(**sizes))
  assert set(planned) == set(jax.devices())
  assert set(planned.values()) == {(total - norms) // 8 + norms}


def test_a_part_of_some_layers_is_read_alone(folder):
  opened = huggingface.open_folder(folder)
  whole = np.asarray(load_model(folder).params["blocks"]["mlp"]["W_in"])
  pieces, views = shards._pieces(opened)["W_in"], shards.Views(opened.found)
  view = pieces[1].convert(views[pieces[1].tensor])
  assert view.shape == whole.shape[1:] and not view.flags.owndata
  extent = ((1, 2), (4, 12), (3, 9))
  part = shards._read(views, pieces, extent, np.dtype("float32"), "W_in")
  np.testing.assert_array_equal(part, whole[1:2, 4:12, 3:9])


def test_meshes_of_other_axes_are_refused(folder):
  with refusal("mesh", "axes data, model", "fsdp and tensor"):
    load_model(folder, mesh=mesh(data=4, model=2))


@pytest.mark.parametrize(
  ("change", "parts"),
  [
    (lambda a: np.where(a == a.max(), np.nan, a), ["W_in", "1 of", "NaN"]),
    (lambda a: a.astype(np.int8), ["mlp.up_proj", "I8", "BF16"]),
  ],
)
def test_bad_weights_are_refused(folder, change, parts):
  path = folder / "model.safetensors"
  tensors = load_file(path)
  name = "model.layers.1.mlp.up_proj.weight"
  tensors[name] = change(tensors[name])
  save_file(tensors, path)
  with refusal(*parts):
    load_model(folder, mesh=mesh(**MESH))


MEASURE = """
import os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
from headjax.models.load import load_model
jax.config.update("jax_platforms", "cpu")
axes = (jax.sharding.AxisType.Auto,) * 2
mesh = jax.make_mesh((8, 1), ("fsdp", "tensor"), axes)
jax.block_until_ready(jax.device_put(1.0))

def peak(field):
  with open("/proc/self/status") as status:
    [line] = [line for line in status if line.startswith(field)]
  return int(line.split()[1]) * 1024

before = peak("VmRSS")
with open("/proc/self/clear_refs", "w") as file:
  file.write("5")  # the peak starts again
loaded = load_model(sys.argv[1], dtype="bfloat16", mesh=mesh)
size = sum(leaf.nbytes for leaf in jax.tree.leaves(loaded.params))
print((peak("VmHWM") - before) / size, size)
"""


@pytest.mark.slow
@pytest.mark.skipif(
  not pathlib.Path("/proc/self/clear_refs").exists(), reason="needs Linux"
)
def test_loading_takes_little_more_memory_than_the_model(tmp_path):
  config = LLAMA_8B | {
    "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 8,
    "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000,
  }  # fmt: skip
  folder = write_sparse(tmp_path / "model", config, n_files=1)
  path = folder / "model-0.safetensors"
  with open(path, "r+b") as stream:  # a hole would take no memory
    start = 8 + struct.unpack("<Q", stream.read(8))[0]
    left = path.stat().st_size - start
    stream.seek(start)
    rng = np.random.default_rng(0)
    while left:
      block = min(left, 1 << 24)
      values = rng.integers(0x3000, 0x3F80, block // 2, np.uint16)  # finite
      left -= stream.write(values.tobytes())
  done = subprocess.run(
    [sys.executable, "-c", MEASURE, folder],
    check=True, capture_output=True, text=True,
    cwd=pathlib.Path(__file__).parents[2],
  )  # fmt: skip
  ratio, size = map(float, done.stdout.split())
  assert size == path.stat().st_size - start > 3e8
  assert ratio < 1.2
